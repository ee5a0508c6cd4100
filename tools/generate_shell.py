# SPDX-License-Identifier: Apache-2.0
"""Makes the manual pages and the completion for bash, zsh and fish, below share/, from
definitions/esk.toml and definitions/options.toml.

usage: generate_shell.py --out DIR definitions/esk.toml definitions/options.toml
"""
import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import generate_esk  # noqa: E402
import generate_options  # noqa: E402
import manual_pages  # noqa: E402
import shell_completion  # noqa: E402


def completion(name, global_options, program):
    return {
        f"share/bash-completion/completions/{name}":
            shell_completion.bash(name, global_options, program),
        f"share/zsh/site-functions/_{name}": shell_completion.zsh(name, global_options, program),
        f"share/fish/vendor_completions.d/{name}.fish":
            shell_completion.fish(name, global_options, program),
    }


def entries(command):
    """The command for completion; one that passes on, for each command that its detail shows."""
    name = command["name"]
    if command.get("passes_on"):
        shown = re.findall(rf"^esk {name} ([a-z]+)\b.*?: ([^.:]*)", command["detail"], re.MULTILINE)
        return [(f"{name} {second}", summary, []) for second, summary in shown]
    return [(name, command["summary"], command.get("option", []))]


def render(esk_table, options):
    """{path below the output directory: text}; esk_table is (global options, commands)."""
    global_options, commands = esk_table
    program = [entry for command in commands for entry in entries(command)]
    files = {f"share/man/man1/{name}": text
             for name, text in manual_pages.esk_pages(global_options, commands).items()}
    files["share/man/man1/esker.1"] = manual_pages.esker_page(options)
    files |= completion("esk", global_options, program)
    files |= completion("esker", options, [("", "", [])])
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("esk", type=pathlib.Path)
    parser.add_argument("options", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        files = render(generate_esk.load(arguments.esk.read_text(encoding="utf-8")),
                       generate_options.load(arguments.options.read_text(encoding="utf-8")))
    except (generate_esk.Invalid, generate_options.Invalid) as problem:
        raise SystemExit(str(problem)) from None
    for path, text in files.items():
        target = arguments.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
