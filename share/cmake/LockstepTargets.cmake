# Declares libraries: usage requirements on targets, no global flags, no globbing but that of layers, which are folders (src/nn/ops).

add_library(lockstep_options INTERFACE)
# The host code that nvcc generates does not pass -Wpedantic.
set(_warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion)
target_compile_options(lockstep_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${_warnings};-Wpedantic>
                                                  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall$<COMMA>-Wextra>
                                                  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${LOCKSTEP_WARNINGS_AS_ERRORS}>>:-Werror>)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC takes an anonymous namespace of a file in a unity build for one of a header.
  target_compile_options(lockstep_options INTERFACE -Wno-subobject-linkage)
endif()
if(LOCKSTEP_SANITIZE)
  set(_fewer $<$<BOOL:$<TARGET_PROPERTY:LOCKSTEP_FEWER_CHECKS>>:-fno-sanitize=null,vptr,alignment>)
  target_compile_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE} ${_fewer} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
  lockstep_report("sanitizers" on "" "${LOCKSTEP_SANITIZE}: not for timing")
endif()

# lockstep_add_module(<name> SOURCES ... [COLD ...] [PUBLIC <targets>] [PRIVATE <targets>])
# Adds a static library of this folder, with src/ as its include root and the alias lockstep::<name>. COLD: sources that
# lockstep_optimize_less() is for.
function(lockstep_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;COLD;PUBLIC;PRIVATE")
  lockstep_reject_unparsed(lockstep_add_module "${arg_UNPARSED_ARGUMENTS}")
  add_library(lockstep_${name} STATIC ${arg_SOURCES})
  add_library(lockstep::${name} ALIAS lockstep_${name})
  set_target_properties(lockstep_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(lockstep_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(lockstep_${name} PUBLIC ${arg_PUBLIC} PRIVATE $<BUILD_INTERFACE:lockstep_options> ${arg_PRIVATE})
  if(arg_COLD)
    add_library(lockstep_${name}_cold OBJECT ${arg_COLD})
    target_include_directories(lockstep_${name}_cold PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(lockstep_${name}_cold PRIVATE ${arg_PUBLIC} ${arg_PRIVATE} lockstep_options)
    lockstep_optimize_less(lockstep_${name}_cold)
    target_sources(lockstep_${name} PRIVATE $<TARGET_OBJECTS:lockstep_${name}_cold>)
    set_target_properties(lockstep_${name} PROPERTIES LINKER_LANGUAGE CXX)  # there may be nothing else
  endif()
endfunction()

# Sources ask for __x86_64__, so the compiler decides here, too. CMAKE_SYSTEM_PROCESSOR is empty if a user sets
# CMAKE_SYSTEM_NAME, as for compute nodes of a Cray.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#ifndef __x86_64__\n#error another processor\n#endif\nint main() {}" LOCKSTEP_IS_X86)

# lockstep_loop_sources(<variable> <file> [<flag> ...])
# Element loops compiled once for each instruction set of core/loop_sets.hpp, which says why: sets the variable to one source for each
# set, a file in the build folder that includes <file>. Only these may carry such flags. Contraction of a*b+c is off, as all sets must
# give the same bits. They are optimized in every build type: -O1, for sanitizers whose checks take minutes to optimize, is the least
# that leaves no inline function of std behind as a weak symbol. Undefined behaviour is the same in all sets, so it is judged in the
# plain one alone. Fuzz targets read files, which no loops but those of images do: they do not judge the others.
function(lockstep_loop_sources variable file)
  set(flags -ffp-contract=off ${ARGN} -O3)
  if(LOCKSTEP_SANITIZE)
    list(APPEND flags -O1)
  endif()
  if(LOCKSTEP_SANITIZE MATCHES "fuzzer" AND NOT file MATCHES "^image/")
    list(APPEND flags -fno-sanitize=all)
  endif()
  set(sets plain)
  set(flags_of_plain ${flags})
  if(LOCKSTEP_IS_X86)
    list(APPEND sets avx2 avx512)
    if(LOCKSTEP_SANITIZE)
      list(APPEND flags -fno-sanitize=undefined)
    endif()
    set(flags_of_avx2 ${flags} -mavx2 -mfma -mf16c)
    set(flags_of_avx512 ${flags} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c -mfma -mprefer-vector-width=512)
  endif()
  cmake_path(GET file STEM name)
  set(sources "")
  foreach(set IN LISTS sets)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}_${set}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${file}\"\n" @ONLY)
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${flags_of_${set}}"
                                                     COMPILE_DEFINITIONS LOCKSTEP_LOOP_SET=${set})
    list(APPEND sources ${source})
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

function(lockstep_reject_unparsed caller unparsed)
  if(unparsed)
    message(FATAL_ERROR "${caller}: unknown arguments: ${unparsed}")
  endif()
endfunction()
