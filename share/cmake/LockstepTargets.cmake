# How libraries are declared: usage requirements on targets, no global flags, no globbing.

add_library(lockstep_options INTERFACE)
target_compile_options(lockstep_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                                  $<$<BOOL:${LOCKSTEP_WARNINGS_AS_ERRORS}>:-Werror>)
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
  lockstep_report("sanitizers" on "" "${LOCKSTEP_SANITIZE}: not for timing")
endif()

# lockstep_add_module(<name> SOURCES ... [PUBLIC <targets>] [PRIVATE <targets>])
# A static library of this folder, src/ its include root. Alias: lockstep::<name>.
function(lockstep_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  lockstep_reject_unparsed(lockstep_add_module "${arg_UNPARSED_ARGUMENTS}")
  add_library(lockstep_${name} STATIC ${arg_SOURCES})
  add_library(lockstep::${name} ALIAS lockstep_${name})
  target_include_directories(lockstep_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(lockstep_${name} PUBLIC ${arg_PUBLIC} PRIVATE lockstep_options ${arg_PRIVATE})
endfunction()

function(lockstep_reject_unparsed caller unparsed)
  if(unparsed)
    message(FATAL_ERROR "${caller}: unknown arguments: ${unparsed}")
  endif()
endfunction()
