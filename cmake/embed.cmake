# The page's style, script and licences as bytes in C: cmake -DFOLDER=… -DOUTPUT=… -P embed.cmake
set(text "#include \"report/page.h\"\n")
foreach(part page.css page.js licences.txt)
  file(READ ${FOLDER}/${part} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "\\..*" "" name ${part})
  if(part MATCHES "page\\.(.*)")
    set(name page_${CMAKE_MATCH_1})
  endif()
  string(TOUPPER ${name} name)
  string(APPEND text "const char REPORT_${name}[] = {${bytes}0};\n"
    "const size_t REPORT_${name}_SIZE = sizeof REPORT_${name} - 1;\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
