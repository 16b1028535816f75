# Takes the code of a Markdown page: all its ```cpp blocks, one after the other, become main.cpp, its ```cmake block
# becomes CMakeLists.txt, its ```text block expected.txt.
# usage: cmake -DPAGE=FILE.md -DFOLDER=FOLDER -P extract.cmake
cmake_minimum_required(VERSION 3.25)
file(READ ${PAGE} rest)

# What CMake's lists would change is hidden while lines are looked at.
string(REPLACE ";" "<semicolon>" rest "${rest}")
string(REPLACE "[" "<open>" rest "${rest}")
string(REPLACE "]" "<close>" rest "${rest}")
string(REPLACE "\n" ";" lines "${rest}")

set(language)
foreach(line IN LISTS lines)
  if(NOT language AND line MATCHES "^```([a-z]+)$")
    set(language ${CMAKE_MATCH_1})
    math(EXPR blocks_${language} "0${blocks_${language}} + 1")
  elseif(line STREQUAL "```")
    set(language)
  elseif(language)
    string(APPEND text_${language} "${line}\n")
  endif()
endforeach()

foreach(pair cpp:main.cpp cmake:CMakeLists.txt text:expected.txt)
  string(REGEX MATCH "^([a-z]+):(.+)$" pair ${pair})
  set(language ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  math(EXPR blocks "0${blocks_${language}}")
  if(blocks EQUAL 0 OR (blocks GREATER 1 AND NOT language STREQUAL cpp))
    message(FATAL_ERROR "${PAGE}: expected one block of ${language}, got ${blocks}")
  endif()
  string(REPLACE "<semicolon>" ";" text "${text_${language}}")
  string(REPLACE "<open>" "[" text "${text}")
  string(REPLACE "<close>" "]" text "${text}")
  file(WRITE ${FOLDER}/${name} "${text}")
endforeach()
