# SPDX-License-Identifier: Apache-2.0
# Manual pages and completion of both programs. esk has a page for each first word of its commands.
set(shell_files bash-completion/completions/esk bash-completion/completions/esker
    zsh/site-functions/_esk zsh/site-functions/_esker fish/vendor_completions.d/esk.fish
    fish/vendor_completions.d/esker.fish man/man1/esker.1 man/man1/esk.1)
file(READ ${CMAKE_SOURCE_DIR}/definitions/esk.toml text)
string(REGEX MATCHALL "\\[\\[command\\]\\]\nname = \"[a-z]+" names "${text}")
list(TRANSFORM names REPLACE ".*\"" "")
list(REMOVE_DUPLICATES names)
foreach(name ${names})
    list(APPEND shell_files man/man1/esk-${name}.1)
endforeach()
list(TRANSFORM shell_files PREPEND share/)
esk_generate(tools/generate_shell.py "definitions/esk.toml;definitions/options.toml"
    "${shell_files}")
foreach(folder man bash-completion zsh fish)
    install(DIRECTORY ${ESK_GENERATED}/share/${folder} DESTINATION share)
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/definitions/esk.toml)
