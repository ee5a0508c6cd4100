# SPDX-License-Identifier: Apache-2.0
esk_generate(tools/generate_esk.py definitions/esk.toml
    "esk/command_table.h;esk/command_table.c;docs/esk.md;share/esk.1;share/esk.bash")
install(FILES ${ESK_GENERATED}/share/esk.1 DESTINATION share/man/man1)
install(FILES ${ESK_GENERATED}/share/esk.bash DESTINATION share/bash-completion/completions
    RENAME esk)
