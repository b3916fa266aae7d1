# Every option of the build. LOCKSTEP_WITH_X: a dependency, AUTO|ON|OFF (AUTO uses it if it is sound, ON fails loudly, OFF
# never looks). LOCKSTEP_BUILD_X: an artefact. LOCKSTEP_SANITIZE and LOCKSTEP_WARNINGS_AS_ERRORS: how.

# _lockstep_choice(<name> <what it is>): AUTO, ON or OFF.
function(_lockstep_choice name what)
  set(${name} AUTO CACHE STRING "${what}: AUTO, ON or OFF")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${name} is '${${name}}'; expected AUTO, ON or OFF")
  endif()
endfunction()

_lockstep_choice(LOCKSTEP_WITH_HWLOC "Topology by hwloc")
_lockstep_choice(LOCKSTEP_WITH_CUDA "GPUs by CUDA")
_lockstep_choice(LOCKSTEP_WITH_NCCL "Collectives of GPUs by NCCL")
_lockstep_choice(LOCKSTEP_WITH_CCACHE "Results of the compiler kept by ccache")
_lockstep_choice(LOCKSTEP_WITH_MOLD "Linking by mold")
_lockstep_choice(LOCKSTEP_BUILD_TRAINING "Build lockstep, the program for data and training")
option(LOCKSTEP_BUILD_TESTING "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LOCKSTEP_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" OFF)
set(LOCKSTEP_MODULE_DEPENDENCIES "" CACHE STRING "Modules that the modulefile loads first, as in gcc/14.2.0;openmpi/5.0.7")
set(LOCKSTEP_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPUs to compile for, as in CMAKE_CUDA_ARCHITECTURES; the last one's code serves newer ones too")
option(LOCKSTEP_ONE_CUDA_ARCHITECTURE "Compile for the first of them alone, whose code serves newer ones too: sooner" OFF)
set(LOCKSTEP_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

include(GNUInstallDirs)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
