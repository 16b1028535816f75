# Runs a program and compares its whole output with a file.
# usage: cmake -DPROGRAM=FILE -DEXPECTED=FILE -P compare.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE got ERROR_VARIABLE errors RESULT_VARIABLE code)
file(READ ${EXPECTED} expected)
if(NOT code EQUAL 0 OR NOT errors STREQUAL "" OR NOT got STREQUAL expected)
  message(FATAL_ERROR "exit code ${code}, on stderr: ${errors}\nexpected:\n${expected}\ngot:\n${got}")
endif()
