# SPDX-License-Identifier: Apache-2.0
"""Manual pages, made of the tables of commands and options: esk(1), a page for each first word of
its commands, such as esk-topic(1), and esker(1)."""
import pathlib
import re

ESK = r""".\" Generated from definitions/esk.toml; do not edit.
.TH ESK 1 "" "esker {version}" "User Commands"
.ad l
.SH NAME
esk \- command\-line tool of Esker, an event\-streaming log
.SH SYNOPSIS
.B esk
.I COMMAND
[\fB\-\-option\fR \fIVALUE\fR]... [\fIARGUMENT\fR]...
.SH DESCRIPTION
Results go to standard output: tables and lines for people, with \-\-json JSON for programs.
Trouble goes to standard error.
Options and arguments may come in any order; behind \-\- everything is an argument.
Letters may share a dash: \-fn5 is \-f \-n 5.
Durations are a number of seconds, or one with ms, s, m, h or d; sizes are a number of bytes, or one
with kB, MB, GB, KiB, MiB or GiB.
.SH COMMANDS
{commands}.SH OPTIONS OF EVERY COMMAND
{globals}.SH ENVIRONMENT
.TP
.B ESK_SERVER, ESK_BINARY_SERVER, ESK_KEY, ESK_CA, ESK_PROFILE
Count where \-\-server, \-\-binary\-server, \-\-key, \-\-ca or \-\-profile is not given.
.TP
.B ESK_PROFILES
The file of profiles.
.SH FILES
.TP
.I ~/.config/esk/profiles
Sections of settings, such as
.PP
.nf
    [production]
    server = https://broker.example:9000
    key = esk_...
    ca = /etc/esker/ca.pem
.fi
.PP
The section named default counts where no other is asked for.
Settings are server, binary\-server, key, ca, cert, cert\-key, insecure and timeout; what is given
on the command line or in the environment goes before.
.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
The broker could not be reached or answered with an error, or a file could not be read.
.TP
.B 2
The command line is wrong.
.TP
.B 130, 141, 143
Ended by SIGINT, by SIGPIPE (nobody reads the output), by SIGTERM.
.SH SEE ALSO
{also}
"""

GROUP = r""".\" Generated from definitions/esk.toml; do not edit.
.TH ESK\-{upper} 1 "" "esker {version}" "User Commands"
.ad l
.SH NAME
esk\-{name} \- {summary}
.SH SYNOPSIS
{synopsis}{commands}.SH SEE ALSO
.BR esk (1),
which has the options of every command, and
.BR esker (1)
"""

ESKER = r""".\" Generated from definitions/options.toml; do not edit.
.TH ESKER 1 "" "esker {version}" "User Commands"
.ad l
.SH NAME
esker \- broker of Esker, an event\-streaming log
.SH SYNOPSIS
.B esker
[\fB\-\-option\fR \fIVALUE\fR | \fB\-\-option\fR=\fIVALUE\fR]...
.SH DESCRIPTION
One log behind several doors: HTTP with JSON, and the binary protocol ES01.
It writes its log lines to standard error and runs until SIGTERM or SIGINT, which let it answer what
is in flight and stop; a second one ends it at once, and loses nothing that was acknowledged.
SIGHUP loads certificates anew.
.PP
Each option can also be given as an environment variable, ESKER_ and its name in capitals with _
for \-, or as a line NAME = VALUE of the file that \-\-config names.
The command line goes before the environment, and that before the file.
Durations are a number and ms, s, m, h or d; sizes are a number of bytes, or one with kB, MB, GB,
KiB, MiB or GiB.
{groups}.SH EXIT STATUS
.TP
.B 0
After a clean stop.
.TP
.B 1
After a failure.
.TP
.B 2
An option is wrong.
.SH SEE ALSO
.BR esk (1)
"""


def roff(text):
    """Text of one line or more, none of which roff takes for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def version():
    """The project's."""
    text = (pathlib.Path(__file__).parents[1] / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"project\(esker VERSION ([0-9.]+)", text)
    return found[1] if found else ""


def option(entry):
    value = "|".join(entry["choices"]) if "choices" in entry else entry.get("value")
    name = f"\\-\\-{roff(entry['name'])}"
    if "letter" in entry:
        name = f"\\-{entry['letter']}, {name}"
    default = entry.get("default", entry.get("automatic"))
    facts = [f"{entry['min']} to {entry['max']}"] if "min" in entry else []
    facts += [f"default: {default}"] if default else []
    facts += ["may be repeated"] if entry.get("repeats") else []
    more = f" ({'; '.join(facts)})" if facts else ""
    shown = f" \\fI{roff(value)}\\fR" if value else ""
    return f".TP\n\\fB{name}\\fR{shown}\n{roff(entry['help'] + more)}\n"


def usage(command):
    arguments = f" \\fI{roff(command['arguments'])}\\fR" if command["arguments"] else ""
    return f"\\fBesk {roff(command['name'])}\\fR{arguments}"


def first_word(command):
    return command["name"].partition(" ")[0]


def group_page(name, commands):
    synopsis = ".br\n".join(f"{usage(command)} [\\fIoption\\fR]...\n" for command in commands)
    text = ""
    for command in commands:
        text += f".SH ESK {roff(command['name'].upper())}\n"
        for number, paragraph in enumerate([command["summary"], *command["detail"].split("\n")]):
            if paragraph:
                text += (".PP\n" if number else "") + roff(paragraph) + "\n"
        text += "".join(option(entry) for entry in command.get("option", []))
        text += ".PP\n.nf\n" + "".join(f"    {roff(line)}\n" for line in command["examples"])
        text += ".fi\n"
    summary = commands[0]["summary"] if len(commands) == 1 else \
        ", ".join(command["name"].partition(" ")[2] for command in commands)
    return GROUP.format(upper=name.upper(), name=name, version=version(),
                        summary=roff(summary.rstrip(".")), synopsis=synopsis, commands=text)


def esk_pages(global_options, commands):
    """{file name: page}"""
    groups = {}
    for command in commands:
        groups.setdefault(first_word(command), []).append(command)
    pages = {f"esk-{name}.1": group_page(name, found) for name, found in groups.items()}
    also = ",\n".join(f".BR esk\\-{name} (1)" for name in groups)
    also = re.sub(r"\(1\),", "(1),", also) + ",\n.BR esker (1)"
    pages["esk.1"] = ESK.format(
        version=version(), globals="".join(option(entry) for entry in global_options), also=also,
        commands="".join(f".TP\n{usage(command)}\n{roff(command['summary'])}\n"
                         for command in commands))
    return pages


def esker_page(options):
    groups = ""
    for group in dict.fromkeys(entry["group"] for entry in options):
        groups += f".SH {roff(group.upper())}\n"
        groups += "".join(option(entry) for entry in options if entry["group"] == group)
    return ESKER.format(version=version(), groups=groups)
