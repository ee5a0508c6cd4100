/* SPDX-License-Identifier: Apache-2.0 */
/* The page that decodes: a form whose script asks the broker. It says what it can't do without a
 * script. */
#include "atlas/site_private.h"

void eski_site_decoder(struct esk_atlas_sink *sink) {
    eski_site_head(sink, "Decode Kafka bytes", "decode.js");
    esk_atlas_text(
        sink,
        "<nav aria-label=\"site\"><a href=\"index.html\">All Kafka APIs</a></nav>\n<main>\n"
        "<h1>Decode Kafka bytes</h1>\n<p>Paste a request with its size in front, as it goes over "
        "the wire, in hex or base64; several may follow each other. What says nothing about itself "
        "(a response, a record) needs a name and a version. A pcap capture in base64 works, "
        "too.</p>\n<noscript><p>This page needs its script; <code>esk kafka decode</code> does the "
        "same in a terminal.</p></noscript>\n"
        "<form id=\"decode\" hidden>\n<p><label for=\"bytes\">Bytes</label><br>\n"
        "<textarea id=\"bytes\" name=\"bytes\" rows=\"8\" spellcheck=\"false\" required></textarea>"
        "</p>\n<p><label>Form <select name=\"form\"><option>hex</option><option>base64</option>"
        "</select></label>\n<label>Kind <select name=\"type\"><option value=\"\">says so itself"
        "</option><option>request</option><option>response</option><option>data</option></select>"
        "</label>\n<label>Name <input name=\"name\" autocomplete=\"off\" list=\"names\"></label>\n"
        "<label>Version <input name=\"version\" inputmode=\"numeric\" size=\"3\" "
        "autocomplete=\"off\"></label>\n<label>Key, if the broker asks for one <input "
        "name=\"key\" type=\"password\" autocomplete=\"off\"></label>\n"
        "<button>Decode</button></p>\n</form>\n"
        "<section id=\"result\" aria-live=\"polite\"></section>\n</main>\n</body>\n</html>\n");
}
