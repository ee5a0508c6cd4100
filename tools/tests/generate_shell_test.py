# SPDX-License-Identifier: Apache-2.0
"""The manual pages pass the checks of man's own programs, and the shells complete what there is."""
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import generate_esk  # noqa: E402
import generate_options  # noqa: E402
import generate_shell  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]


def table(name):
    return (ROOT / "definitions" / f"{name}.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def share(tmp_path_factory):
    """The folder share/ as it is installed."""
    root = tmp_path_factory.mktemp("shell")
    files = generate_shell.render(generate_esk.load(table("esk")),
                                  generate_options.load(table("options")))
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root / "share"


def run(program, *arguments):
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                            check=False)
    assert result.returncode == 0 or program == "mandoc", result
    return result


ESK_CASES = [
    (["pro"], {"produce", "producer"}),
    (["help", "gro"], {"group"}),
    (["help", "group", ""], {"list", "offsets", "commit", "delete"}),
    (["topic", ""], {"create", "list", "describe", "config", "delete", "tail"}),
    (["kafka", ""], {"list", "show", "decode", "encode", "export"}),
    (["topic", "create", "--part"], {"--partitions"}),
    (["consume", "orders", "--enc"], {"--encoding"}),
    (["consume", "--encoding", ""], {"utf8", "base64", "raw"}),
    (["consume", "orders", "-e", ""], {"utf8", "base64", "raw"}),
    (["topic", "tail", "orders", "-e", "b"], {"base64"}),
    (["schema", "check", "-t", ""], {"json_schema", "avro", "protobuf"}),
    (["bench", "consume", "-t", "j"], set()),
    (["bench", "produce", "--spread", "re"], {"request", "record"}),
    (["group", "offsets", "--js"], {"--json"}),
    (["--server", "http://a", "--timeout", "5", "topic", "cre"], {"create"}),
    (["admin", "run-"], {"run-retention", "run-compaction"}),
]


def bash_words(share, name, words):
    quoted = " ".join(f"'{word}'" for word in [name, *words])
    found = run("bash", "-c", f". {share}/bash-completion/completions/{name}; "
                f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _{name}; "
                'printf "%s\\n" "${COMPREPLY[@]}"')
    assert found.stderr == ""
    return {word for word in found.stdout.split() if words[-1] or not word.startswith("--")}


def fish_words(share, name, words):
    line = " ".join([name, *words])
    found = run("fish", "--no-config", "-c",
                f"source {share}/fish/vendor_completions.d/{name}.fish; complete -C '{line}'")
    assert found.stderr == ""
    return {row.split("\t")[0] for row in found.stdout.split("\n") if row}


# zsh's completion system needs a terminal: its functions are stood in for.
ZSH_STUBS = """
compdef() { : }
_describe() { shift $(( $1 == -o ? 2 : 1 )); print -l -- ${(P)1%%:*} }
_files() { print FILES }
_message() { : }
compadd() { shift; print -l -- $@ }
"""


def zsh_words(share, name, words):
    quoted = " ".join(f"'{word}'" for word in [name, *words])
    stubs = ZSH_STUBS.replace("$(( $1 == -o ? 2 : 1 ))", "$([[ $1 == -o ]] && print 2 || print 1)")
    found = run("zsh", "-f", "-c", f"{stubs}\nsource {share}/zsh/site-functions/_{name}\n"
                f"words=({quoted}); CURRENT={len(words) + 1}; _{name}")
    assert found.stderr == ""
    return {word for word in found.stdout.split() if word.startswith(words[-1])}


@pytest.mark.parametrize("shell", [bash_words, zsh_words, fish_words])
@pytest.mark.parametrize("words, expected", ESK_CASES)
def test_shells_complete_commands_options_and_choices(share, shell, words, expected):
    assert shell(share, "esk", words) == expected


@pytest.mark.parametrize("shell", [bash_words, zsh_words, fish_words])
@pytest.mark.parametrize("words, expected", [
    (["--bind-b"], {"--bind-binary"}),
    (["--log-format", ""], {"text", "json"}),
    (["--auth", "req"], {"required"}),
])
def test_shells_complete_the_broker_s_options(share, shell, words, expected):
    assert shell(share, "esker", words) == expected


def test_files_are_offered_where_a_file_is_meant(share, tmp_path):
    (tmp_path / "events.txt").touch()
    for words in (["--ca", f"{tmp_path}/ev"], ["produce", "orders", "--ca", f"{tmp_path}/ev"]):
        assert bash_words(share, "esk", words) == {f"{tmp_path}/events.txt"}
    assert bash_words(share, "esker", ["--tls-cert", f"{tmp_path}/ev"]) == \
        {f"{tmp_path}/events.txt"}


def test_the_manual_pages_are_complete(share):
    pages = {page.name: page.read_text(encoding="utf-8")
             for page in (share / "man" / "man1").iterdir()}
    _, commands = generate_esk.load(table("esk"))
    for command in commands:
        page = pages[f"esk-{command['name'].split()[0]}.1"]
        assert f".SH ESK {command['name'].upper()}".replace("-", "\\-") in page
        for option in command.get("option", []):
            assert "\\-\\-" + option["name"].replace("-", "\\-") in page
        assert f"\\fBesk {command['name']}".replace("-", "\\-") in pages["esk.1"]
    for option in generate_options.load(table("options")):
        assert "\\-\\-" + option["name"].replace("-", "\\-") in pages["esker.1"]


@pytest.mark.parametrize("program, arguments", [
    ("mandoc", ["-T", "lint", "-W", "warning"]),
    ("groff", ["-man", "-ww", "-z"]),
])
def test_the_manual_pages_pass_the_checks(share, program, arguments):
    pages = sorted((share / "man" / "man1").iterdir())
    assert pages
    result = run(program, *arguments, *pages)
    problems = [line for line in (result.stdout + result.stderr).split("\n")
                if line and not re.search("missing date", line)]
    assert problems == []
