# SPDX-License-Identifier: Apache-2.0
"""What black-box tests stand on: a broker in its own process, and clients for it."""
from harness.broker import Broker, BrokerFailed
from harness.http import Answer, HttpClient
from harness.raw import RawConnection

__all__ = ["Answer", "Broker", "BrokerFailed", "HttpClient", "RawConnection"]
