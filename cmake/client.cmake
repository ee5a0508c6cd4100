# SPDX-License-Identifier: Apache-2.0
# libesker, shared and static, from the sources of src/client and the few others that they use. Both
# show the symbols of include/esker alone.

set(ESK_CLIENT_SOVERSION 0) # one more with each change that old programs would not survive

function(esk_client_library)
    esk_folder_sources(client sources)
    esk_folder_sources(wire/es01 codec)
    foreach(name assert bytes error key_hash memory)
        list(APPEND sources ${CMAKE_SOURCE_DIR}/src/base/${name}.c)
    endforeach()
    list(APPEND sources ${codec} ${CMAKE_SOURCE_DIR}/src/model/partitioner.c
        ${ESK_GENERATED}/base/errors.c)
    add_library(libesker_objects OBJECT ${sources})
    add_dependencies(libesker_objects esk_generated)
    target_link_libraries(libesker_objects PRIVATE esk_flags)
    set_target_properties(libesker_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)

    set(symbols ${CMAKE_SOURCE_DIR}/src/client/libesker.map)
    add_library(libesker SHARED $<TARGET_OBJECTS:libesker_objects>)
    target_link_libraries(libesker PRIVATE esk_flags gnutls z)
    target_link_options(libesker PRIVATE -Wl,--version-script=${symbols} -Wl,--as-needed)
    set_target_properties(libesker PROPERTIES OUTPUT_NAME esker PREFIX lib
        VERSION ${PROJECT_VERSION} SOVERSION ${ESK_CLIENT_SOVERSION} LINK_DEPENDS ${symbols}
        LINKER_LANGUAGE C)

    # One object, in which all but the public symbols are local.
    set(archive ${CMAKE_BINARY_DIR}/libesker.a)
    set(object ${CMAKE_BINARY_DIR}/libesker.o)
    add_custom_command(OUTPUT ${archive}
        COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
        COMMAND ${CMAKE_LINKER} -r -o ${object} $<TARGET_OBJECTS:libesker_objects>
        COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=esk_client_*
            --keep-global-symbol=esk_pipeline_* ${object}
        COMMAND ${CMAKE_AR} rcs ${archive} ${object}
        DEPENDS libesker_objects $<TARGET_OBJECTS:libesker_objects>
        COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(libesker_static ALL DEPENDS ${archive})

    configure_file(${CMAKE_SOURCE_DIR}/src/client/esker.pc.in ${CMAKE_BINARY_DIR}/esker.pc @ONLY)
    # The component is for who wants the library alone: cmake --install B --component client
    install(TARGETS libesker LIBRARY DESTINATION lib COMPONENT client
        NAMELINK_COMPONENT client)
    install(FILES ${archive} DESTINATION lib COMPONENT client)
    install(FILES ${CMAKE_BINARY_DIR}/esker.pc DESTINATION lib/pkgconfig COMPONENT client)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/esker DESTINATION include COMPONENT client
        FILES_MATCHING PATTERN "*.h")
endfunction()
