# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made by certtool (package gnutls-bin)."""
import itertools
import pathlib
import subprocess


def certtool(*arguments):
    result = subprocess.run(["certtool", *map(str, arguments)], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result


class Pair:
    """A certificate and its key, in files."""

    def __init__(self, certificate, key):
        self.certificate = certificate
        self.key = key


class Authority(Pair):
    """Signs certificates; the files are in folder."""

    _numbers = itertools.count(1)

    def __init__(self, folder, name="authority"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        pair = self._make(name, ["ca", "cert_signing_key", "expiration_days = 2"], issuer=None)
        super().__init__(pair.certificate, pair.key)

    def server(self, name="localhost", dates=("expiration_days = 2",), key_type="ecdsa"):
        lines = [f'dns_name = "{name}"', 'ip_address = "127.0.0.1"', "tls_www_server",
                 "signing_key", *dates]
        return self._make(name, lines, self, key_type)

    def expired_server(self):
        return self.server(dates=('activation_date = "2020-01-01 00:00:00"',
                                  'expiration_date = "2021-01-01 00:00:00"'))

    def client(self, name="client"):
        return self._make(name, ["tls_www_client", "signing_key", "expiration_days = 2"], self)

    def _make(self, name, lines, issuer, key_type="ecdsa"):
        number = next(self._numbers)
        template = self.folder / f"{name}-{number}.template"
        template.write_text("\n".join([f'cn = "{name}"', f"serial = {number}", *lines]) + "\n")
        pair = Pair(self.folder / f"{name}-{number}.pem", self.folder / f"{name}-{number}.key")
        certtool("--generate-privkey", "--key-type", key_type, "--outfile", pair.key)
        signing = ["--generate-self-signed"] if issuer is None else [
            "--generate-certificate", "--load-ca-certificate", issuer.certificate,
            "--load-ca-privkey", issuer.key]
        certtool(*signing, "--load-privkey", pair.key, "--template", template,
                 "--outfile", pair.certificate)
        return pair
