# SPDX-License-Identifier: Apache-2.0
"""Completion for bash, zsh and fish, made of the tables of commands and options.

A program is a list of (words, summary, options); esker has one with no words. An option completes
to its choices, to files where its value is FILE or DIR, and else to nothing.
"""
FILE_VALUES = {"FILE", "DIR"}


def takes_value(entry):
    return entry["type"] != "flag"


def is_file(entry):
    return entry.get("value") in FILE_VALUES


def spellings(entry):
    return [f"--{entry['name']}"] + ([f"-{entry['letter']}"] if "letter" in entry else [])


def all_options(program):
    return [entry for _, _, options in program for entry in options]


def patterns(entries):
    """The spellings as alternatives of a shell's case; one that matches nothing when there are
    none."""
    found = dict.fromkeys(word for entry in entries for word in spellings(entry))
    return "|".join(found) or "''"


def choices_of(global_options, program):
    """[(choices, patterns)] of "first second option": a letter means another option elsewhere."""
    found = {}
    for words, _, options in [("", "", global_options), *program]:
        place = f'"{words} ' if " " in words else f'"{words} "*" ' if words else '*" '
        for entry in options:
            if "choices" in entry:
                found.setdefault(tuple(entry["choices"]), []).extend(
                    f'{place}{word}"' for word in spellings(entry))
    return [(" ".join(choices), " | ".join(patterns)) for choices, patterns in found.items()]


def groups_of(program):
    """{first word: {second word or "": summary}}"""
    groups = {}
    for words, summary, _ in program:
        first, _, second = words.partition(" ")
        groups.setdefault(first, {})[second] = summary
    return groups


def subcommands(program):
    return {first: seconds for first, seconds in groups_of(program).items() if "" not in seconds}


BASH = """# SPDX-License-Identifier: Apache-2.0
# Completion of {name} for bash. Generated from definitions/; do not edit.
_{name}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local first= second= word skip= options
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        if [ -n "$skip" ]; then skip=; continue; fi
        case $word in
        {takers}) skip=1 ;;
        -*) ;;
        *) if [ -z "$first" ]; then first=$word; elif [ -z "$second" ]; then second=$word; fi ;;
        esac
    done
    case "$first $second $previous" in
{values}    esac
    case $previous in
    {files}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    {takers}) COMPREPLY=(); return ;;
    esac
    case "$first $second" in
{cases}    esac
    COMPREPLY=($(compgen -W "$options {globals}" -- "$current"))
}}
complete -o default -F _{name} {name}
"""


def bash(name, global_options, program):
    entries = global_options + all_options(program)
    values = "".join(
        f"    {pattern}) COMPREPLY=($(compgen -W \"{choices}\" -- \"$current\"))\n"
        "        return ;;\n"
        for choices, pattern in choices_of(global_options, program))
    cases = ""
    firsts = [first for first in groups_of(program) if first]
    if firsts:
        cases += f'    " ") options="{" ".join([*firsts, "help"])}" ;;\n'
        cases += f'    "help ") options="{" ".join(firsts)}" ;;\n'
    for first, seconds in subcommands(program).items():
        cases += f'    "help {first}" | "{first} ") options="{" ".join(seconds)}" ;;\n'
    for words, _, options in program:
        pattern = f'"{words}"' if " " in words else f'"{words} "*'
        names = " ".join("--" + entry["name"] for entry in options)
        cases += f'    {pattern}) options="{names}" ;;\n'
    return BASH.format(
        name=name, values=values, cases=cases,
        takers=patterns(entry for entry in entries if takes_value(entry)),
        files=patterns(entry for entry in entries if is_file(entry)),
        globals=" ".join("--" + entry["name"] for entry in global_options))


ZSH = """#compdef {name}
# SPDX-License-Identifier: Apache-2.0
# Completion of {name} for zsh. Generated from definitions/; do not edit.
_{name}() {{
    local first= second= word skip= previous=${{words[CURRENT - 1]}}
    local -a options commands
    for word in "${{(@)words[2,CURRENT - 1]}}"; do
        if [[ -n $skip ]]; then skip=; continue; fi
        case $word in
        {takers}) skip=1 ;;
        -*) ;;
        *) if [[ -z $first ]]; then first=$word; elif [[ -z $second ]]; then second=$word; fi ;;
        esac
    done
    case "$first $second $previous" in
{values}    esac
    case $previous in
    {files}) _files; return ;;
    {takers}) _message 'a value'; return ;;
    esac
    case "$first $second" in
{cases}    esac
    options+=({globals})
    if [[ ${{words[CURRENT]}} == -* ]]; then
        _describe -o option options
    elif (( $#commands )); then
        _describe command commands
    else
        _files
    fi
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _{name} "$@"; else compdef _{name} {name}; fi
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def described(word, text):
    return quoted(word.replace(":", "\\:") + ":" + text.replace("\n", " "))


def zsh(name, global_options, program):
    def list_of(options):
        return " ".join(described("--" + entry["name"], entry["help"]) for entry in options)

    entries = global_options + all_options(program)
    values = "".join(
        f"    {pattern}) compadd -- {choices}; return ;;\n"
        for choices, pattern in choices_of(global_options, program))
    cases = ""
    summaries = {first: " ".join(filter(None, seconds)) or seconds[""]
                 for first, seconds in groups_of(program).items() if first}
    if summaries:
        firsts = " ".join(described(first, text) for first, text in summaries.items())
        cases += f"    ' ' | 'help ') commands=({firsts}) ;;\n"
    for first, seconds in subcommands(program).items():
        words = " ".join(described(second, text) for second, text in seconds.items())
        cases += f"    'help {first}' | '{first} ') commands=({words}) ;;\n"
    for words, _, options in program:
        pattern = quoted(words) if " " in words else quoted(words + " ") + "*"
        cases += f"    {pattern}) options=({list_of(options)}) ;;\n"
    return ZSH.format(
        name=name, values=values, cases=cases,
        takers=patterns(entry for entry in entries if takes_value(entry)),
        files=patterns(entry for entry in entries if is_file(entry)),
        globals=list_of(global_options))


FISH = """# SPDX-License-Identifier: Apache-2.0
# Completion of {name} for fish. Generated from definitions/; do not edit.
function __{name}_is
    set -l found
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $word {takers}
            set skip 1
        else if not string match -q -- '-*' $word
            set found $found $word
        end
    end
    if test "$found[1]" = help
        set -e found[1]
    end
    if contains -- "$found[1]" {groups}
        set found $found[1..2]
    else
        set found $found[1]
    end
    test "$found" = "$argv"
end
complete -c {name} -f
"""


def fish(name, global_options, program):
    def option(entry, condition):
        line = f"complete -c {name}{condition} -l {entry['name']}"
        line += f" -s {entry['letter']}" if "letter" in entry else ""
        line += " -x" if takes_value(entry) and not is_file(entry) else ""
        line += " -rF" if is_file(entry) else ""
        line += f" -a {quoted(' '.join(entry['choices']))}" if "choices" in entry else ""
        return f"{line} -d {quoted(entry['help'])}\n"

    def when(words):
        return f" -n {quoted(f'__{name}_is {words}'.strip())}" if program[0][0] else ""

    takers = [word for entry in global_options + all_options(program) if takes_value(entry)
              for word in spellings(entry)]
    text = FISH.format(name=name, takers=" ".join(dict.fromkeys(takers)),
                       groups=" ".join(subcommands(program)) or "''")
    text += "".join(option(entry, "") for entry in global_options)
    if program[0][0]:
        text += f"complete -c {name}{when('')} -a help -d 'show what a command does'\n"
    for first, seconds in groups_of(program).items():
        if first:
            summary = seconds.get("", " ".join(seconds))
            text += f"complete -c {name}{when('')} -a {first} -d {quoted(summary)}\n"
        for second, summary in seconds.items():
            if second:
                text += f"complete -c {name}{when(first)} -a {second} -d {quoted(summary)}\n"
    for words, _, options in program:
        text += "".join(option(entry, when(words)) for entry in options)
        if words and " " not in words:
            text += f"complete -c {name}{when(words)} -F\n"
    return text
