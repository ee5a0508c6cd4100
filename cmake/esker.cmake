# SPDX-License-Identifier: Apache-2.0
# What the top CMakeLists.txt is written in: flags, generated sources, libraries, programs, tests.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
# The system's Python: pytest and the test clients come from its packages.
if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
    set(Python3_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
set(ESK_GENERATED ${CMAKE_BINARY_DIR}/generated)

add_library(esk_flags INTERFACE)
target_compile_options(esk_flags INTERFACE
    -Wall -Wextra -Werror -fno-strict-aliasing -fno-omit-frame-pointer
    $<$<COMPILE_LANGUAGE:C>:-Wconversion -Wno-sign-conversion -Wshadow>
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    target_compile_options(esk_flags INTERFACE -march=x86-64-v2)
    # gcc would copy some tens of bytes by `rep movs`, whose start costs more than the call.
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(esk_flags INTERFACE -mstringop-strategy=libcall)
    endif()
endif()
target_compile_definitions(esk_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64
    ESK_VERSION="${PROJECT_VERSION}")
target_include_directories(esk_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include
    ${ESK_GENERATED})
target_link_libraries(esk_flags INTERFACE Threads::Threads m)
option(ESK_TEST_HOOKS "esker takes ESKER_FAULTS and injected errors; never in a release" OFF)
if(ESK_TEST_HOOKS)
    target_compile_definitions(esk_flags INTERFACE ESK_TEST_HOOKS)
endif()
if(ESK_SANITIZE)
    target_compile_options(esk_flags INTERFACE -fsanitize=${ESK_SANITIZE} -fno-sanitize-recover=all)
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
        # gcc's own advice: the checks that it inserts make these warnings see ghosts.
        target_compile_options(esk_flags INTERFACE -Wno-maybe-uninitialized -Wno-format-truncation)
    endif()
    target_link_options(esk_flags INTERFACE -fsanitize=${ESK_SANITIZE})
endif()
if(ESK_FUZZ)
    target_compile_options(esk_flags INTERFACE -fsanitize=fuzzer-no-link)
    target_link_options(esk_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# esk_generate(tools/generator.py "definitions/input ..." "folder/output ...")
# runs the generator with --out DIR INPUTS; outputs are paths below DIR, which is on the include
# path. A .c output of a folder of src/ becomes a source of that folder's library. Every library and
# program waits for all generators.
add_custom_target(esk_generated)
add_dependencies(esk_flags esk_generated)
function(esk_generate script inputs outputs)
    list(TRANSFORM inputs PREPEND ${CMAKE_SOURCE_DIR}/)
    list(TRANSFORM outputs PREPEND ${ESK_GENERATED}/ OUTPUT_VARIABLE files)
    add_custom_command(OUTPUT ${files}
        COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/${script} --out ${ESK_GENERATED}
            ${inputs}
        DEPENDS ${CMAKE_SOURCE_DIR}/${script} ${inputs} VERBATIM)
    string(SHA1 hash "${script} ${outputs}")
    string(SUBSTRING ${hash} 0 12 hash)
    add_custom_target(generate_${hash} DEPENDS ${files})
    add_dependencies(esk_generated generate_${hash})
    foreach(output ${outputs})
        if(output MATCHES "^(.+)/[^/]+\\.c$")
            string(REPLACE "/" "_" id ${CMAKE_MATCH_1})
            set_property(GLOBAL APPEND PROPERTY ESK_GENERATED_${id} ${ESK_GENERATED}/${output})
        endif()
    endforeach()
endfunction()

# Each definitions/NAME.cmake and definitions/NAME/generate.cmake holds esk_generate calls.
macro(esk_generated_sources)
    file(GLOB hooks CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/definitions/*.cmake
        ${CMAKE_SOURCE_DIR}/definitions/*/generate.cmake)
    foreach(hook ${hooks})
        include(${hook})
    endforeach()
endmacro()

# llhttp: the library where the distribution has one, else the C sources that Debian 12's
# node-llhttp ships, compiled in strict mode (the default takes "X : b" and chunks without CRLF).
function(esk_find_llhttp)
    if(TARGET esk_llhttp)
        return()
    endif()
    find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp REQUIRED)
    find_library(LLHTTP_LIBRARY llhttp)
    if(LLHTTP_LIBRARY)
        add_library(esk_llhttp INTERFACE)
        target_link_libraries(esk_llhttp INTERFACE ${LLHTTP_LIBRARY})
        target_include_directories(esk_llhttp SYSTEM INTERFACE ${LLHTTP_INCLUDE})
        return()
    endif()
    file(GLOB sources /usr/share/llhttp/*.c)
    if(NOT sources)
        message(FATAL_ERROR "llhttp not found: install libllhttp-dev, or node-llhttp on Debian 12")
    endif()
    add_library(esk_llhttp STATIC ${sources})
    target_compile_definitions(esk_llhttp PUBLIC LLHTTP_STRICT_MODE=1)
    target_include_directories(esk_llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
    target_compile_options(esk_llhttp PRIVATE -O2 -w)
endfunction()

function(esk_system_libraries target visibility names)
    foreach(name ${names})
        if(name STREQUAL llhttp)
            esk_find_llhttp()
            target_link_libraries(${target} ${visibility} esk_llhttp)
        elseif(name STREQUAL uv)
            pkg_check_modules(uv REQUIRED IMPORTED_TARGET GLOBAL libuv)
            target_link_libraries(${target} ${visibility} PkgConfig::uv)
        else()
            target_link_libraries(${target} ${visibility} ${name})
        endif()
    endforeach()
endfunction()

# The .c and .cc files of a folder of src/ that are neither for tests nor a program's main, and the
# generated ones.
function(esk_folder_sources folder result)
    string(REPLACE "/" "_" id ${folder})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.c
        ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
    list(FILTER sources EXCLUDE REGEX "_(test|testing|main)\\.c$")
    get_property(generated GLOBAL PROPERTY ESK_GENERATED_${id})
    set(${result} ${sources} ${generated} PARENT_SCOPE)
endfunction()

set(ESK_FOLDERS "" CACHE INTERNAL "")
set(ESK_LIBRARIES "" CACHE INTERNAL "") # all of esk_library, for programs that use any of them

# esk_library(a/b "folders it uses" "system libraries") makes esk_a_b; of an empty folder, too.
function(esk_library folder deps system)
    string(REPLACE "/" "_" id ${folder})
    esk_folder_sources(${folder} sources)
    if(sources)
        add_library(esk_${id} STATIC ${sources})
        add_dependencies(esk_${id} esk_generated)
        set(visibility PUBLIC)
    else()
        add_library(esk_${id} INTERFACE)
        set(visibility INTERFACE)
    endif()
    target_link_libraries(esk_${id} ${visibility} esk_flags)
    foreach(dep ${deps})
        string(REPLACE "/" "_" dep ${dep})
        target_link_libraries(esk_${id} ${visibility} esk_${dep})
    endforeach()
    esk_system_libraries(esk_${id} ${visibility} "${system}")
    set(ESK_FOLDERS ${ESK_FOLDERS} ${folder} CACHE INTERNAL "")
    set(ESK_LIBRARIES esk_${id} ${ESK_LIBRARIES} CACHE INTERNAL "")
endfunction()

# A program's folder holds NAME_main.c and, beside it, its other sources: library esk_NAME_program.
function(esk_program name deps)
    esk_folder_sources(${name} sources)
    set(libraries esk_flags)
    foreach(dep ${deps})
        string(REPLACE "/" "_" dep ${dep})
        list(APPEND libraries esk_${dep})
    endforeach()
    if(sources)
        add_library(esk_${name}_program STATIC ${sources})
        add_dependencies(esk_${name}_program esk_generated)
        target_link_libraries(esk_${name}_program PUBLIC ${libraries})
        list(PREPEND libraries esk_${name}_program)
    else()
        add_library(esk_${name}_program INTERFACE)
        target_link_libraries(esk_${name}_program INTERFACE ${libraries})
    endif()
    set(ESK_FOLDERS ${ESK_FOLDERS} ${name} CACHE INTERNAL "")
    file(GLOB main CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/${name}_main.c)
    if(NOT main)
        return()
    endif()
    add_executable(${name} ${main})
    add_dependencies(${name} esk_generated)
    target_link_libraries(${name} PRIVATE ${libraries})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# F/x_test.c becomes the program F_x_test, known to ctest as F.x. What the tests of a folder share
# is in F/y_testing.c and .h, part of each of its test programs.
function(esk_tests)
    foreach(folder ${ESK_FOLDERS})
        string(REPLACE "/" "_" id ${folder})
        string(REPLACE "/" "." dotted ${folder})
        file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*_test.c)
        file(GLOB shared CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*_testing.c)
        set(library esk_${id})
        if(TARGET esk_${id}_program)
            set(library esk_${id}_program)
        endif()
        foreach(test ${tests})
            get_filename_component(stem ${test} NAME_WE)
            string(REGEX REPLACE "_test$" "" subject ${stem})
            add_executable(${id}_${stem} ${test} ${shared})
            add_dependencies(${id}_${stem} esk_generated)
            target_link_libraries(${id}_${stem} PRIVATE ${library} esk_flags cmocka)
            set_target_properties(${id}_${stem} PROPERTIES
                RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
            add_test(NAME ${dotted}.${subject} COMMAND ${id}_${stem}
                WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
            set_tests_properties(${dotted}.${subject} PROPERTIES TIMEOUT 300 LABELS unit)
        endforeach()
    endforeach()
endfunction()

# Every tests/KIND/test_x.py or x_test.py becomes the ctest entry KIND.x, run by pytest; tools/tests
# likewise. The programs under test come as ESKER_BINARY and ESK_BINARY.
function(esk_pytests)
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/test_*.py
        ${CMAKE_SOURCE_DIR}/tests/*/*_test.py ${CMAKE_SOURCE_DIR}/tools/tests/*_test.py)
    foreach(file ${files})
        get_filename_component(name ${file} NAME_WE)
        string(REGEX REPLACE "^test_|_test$" "" name ${name})
        get_filename_component(kind ${file} DIRECTORY)
        file(RELATIVE_PATH kind ${CMAKE_SOURCE_DIR} ${kind})
        string(REGEX REPLACE "^tests/|/tests$" "" kind ${kind})
        add_test(NAME ${kind}.${name}
            COMMAND Python3::Interpreter -B -m pytest -q -p no:cacheprovider ${file}
            WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
        set(environment ESKER_BINARY=${CMAKE_BINARY_DIR}/esker ESK_BINARY=${CMAKE_BINARY_DIR}/esk
            ESKER_BUILD=${CMAKE_BINARY_DIR})
        set_tests_properties(${kind}.${name} PROPERTIES TIMEOUT 900 LABELS ${kind}
            ENVIRONMENT "${environment}")
    endforeach()
endfunction()
