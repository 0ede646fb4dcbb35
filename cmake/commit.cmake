# Writes which commit is being built to OUTPUT, and leaves the file alone where nothing changed:
#     cmake -DSOURCE=folder -DOUTPUT=file -P commit.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --exclude=*
  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT COMMIT)
  set(COMMIT unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define PSI_COMMIT \"${COMMIT}\"\n" @ONLY)
