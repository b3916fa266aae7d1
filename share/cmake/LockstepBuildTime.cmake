# Makes a build faster without a change to anything that is measured: a cache of compilations (ccache), a fast linker
# (mold), precompiled headers, and less optimization of code that is not hot.

# ccache learns from the compiler which files a file includes, so a miss costs nothing. No macro here contains the time.
if(LOCKSTEP_WITH_CCACHE STREQUAL "OFF")
  lockstep_report("ccache" off "" "LOCKSTEP_WITH_CCACHE=OFF")
elseif(CMAKE_CXX_COMPILER_LAUNCHER)
  lockstep_report("ccache" off "" "CMAKE_CXX_COMPILER_LAUNCHER is ${CMAKE_CXX_COMPILER_LAUNCHER}")
else()
  find_program(LOCKSTEP_CCACHE ccache)
  mark_as_advanced(LOCKSTEP_CCACHE)
  if(LOCKSTEP_CCACHE)
    set(_launcher env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${LOCKSTEP_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${_launcher})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${_launcher})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${_launcher})
    lockstep_report("ccache" on "" "${LOCKSTEP_CCACHE}")
  elseif(LOCKSTEP_WITH_CCACHE STREQUAL "ON")
    message(FATAL_ERROR "LOCKSTEP_WITH_CCACHE=ON, but there is no ccache in $PATH")
  else()
    lockstep_report("ccache" off "" "none in $PATH")
  endif()
endif()

# Uses mold, else lld, if the compiler accepts it.
if(LOCKSTEP_WITH_MOLD STREQUAL "OFF")
  lockstep_report("mold" off "" "LOCKSTEP_WITH_MOLD=OFF")
else()
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold LOCKSTEP_HAVE_MOLD)
  if(LOCKSTEP_HAVE_MOLD)
    add_link_options(-fuse-ld=mold)
    lockstep_report("mold" on "" "-fuse-ld=mold")
  elseif(LOCKSTEP_WITH_MOLD STREQUAL "ON")
    message(FATAL_ERROR "LOCKSTEP_WITH_MOLD=ON, but ${CMAKE_CXX_COMPILER} cannot link with -fuse-ld=mold")
  else()
    check_linker_flag(CXX -fuse-ld=lld LOCKSTEP_HAVE_LLD)
    set(_instead "")
    if(LOCKSTEP_HAVE_LLD)
      add_link_options(-fuse-ld=lld)
      set(_instead "; lld links instead")
    endif()
    lockstep_report("mold" off "" "${CMAKE_CXX_COMPILER} cannot link with -fuse-ld=mold${_instead}")
  endif()
endif()

# lockstep_optimize_less(<target> [ON|OFF]): for code that runs briefly or only waits: it describes, checks, reads text,
# reports. It halves the time to compile. OFF, for most tests, disables optimization, and saves another quarter. Code
# that is measured does not use it: collectives, networks, optimizers, the path of samples, reduce_all. Builds with
# sanitizers do not optimize such code at all, and leave out three checks that double its machine code. The address
# sanitizer finds null and freed objects, too. Code that reads bytes as numbers has fuzz targets. These have all checks
# and are optimized, because they run without end.
function(lockstep_optimize_less target)
  set(level -O1)
  if(ARGC GREATER 1 AND NOT ARGV1)
    set(level -O0)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
  if(LOCKSTEP_SANITIZE AND NOT LOCKSTEP_SANITIZE MATCHES "fuzzer")
    target_compile_options(${target} PRIVATE -O0)
    set_target_properties(${target} PROPERTIES LOCKSTEP_FEWER_CHECKS ON)  # lockstep_options leaves out the checks
  endif()
endfunction()
