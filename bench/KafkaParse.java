// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;

/** The Java client's own parser on the bodies that bench_kafka_codec wrote: KafkaParse DIR. */
public class KafkaParse {
    static Object sink;

    /** CPU time, as for ours; the collector's threads are not counted. */
    static long cpu() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    interface Maker {
        Message make(ByteBufferAccessor bytes, short version);
    }

    static void run(String directory, String name, short version, Maker maker) throws Exception {
        byte[] bytes = Files.readAllBytes(Path.of(directory, name + "-" + version));
        double best = Double.MAX_VALUE;
        for (int round = 0; round < 30; round++) { // the first ones warm up
            long count = 0;
            long start = cpu();
            long end;
            do {
                for (int i = 0; i < 16; i++, count++) {
                    sink = maker.make(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), version);
                }
                end = cpu();
            } while (end - start < 100_000_000L);
            if (round >= 10) best = Math.min(best, (double) (end - start) / count);
        }
        System.out.printf("%s %.0f%n", name, best);
    }

    public static void main(String[] args) throws Exception {
        run(args[0], "ProduceRequest", (short) 9, ProduceRequestData::new);
        run(args[0], "ApiVersionsResponse", (short) 3, ApiVersionsResponseData::new);
        run(args[0], "MetadataResponse", (short) 12, MetadataResponseData::new);
    }
}
