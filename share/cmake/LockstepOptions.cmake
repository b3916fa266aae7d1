# Declares every option of the build. LOCKSTEP_WITH_X: a dependency. AUTO uses it if it is sound, ON fails if it is not,
# OFF does not look for it. LOCKSTEP_BUILD_X: an artefact. LOCKSTEP_SANITIZE and LOCKSTEP_WARNINGS_AS_ERRORS: how to
# build.

# _lockstep_choice(<name> <what it is>): declares an option that is AUTO, ON or OFF.
function(_lockstep_choice name what)
  set(${name} AUTO CACHE STRING "${what}: AUTO, ON or OFF")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${name} is '${${name}}'; expected AUTO, ON or OFF")
  endif()
endfunction()

_lockstep_choice(LOCKSTEP_WITH_HWLOC "Topology with hwloc")
_lockstep_choice(LOCKSTEP_WITH_CUDA "GPUs with CUDA")
_lockstep_choice(LOCKSTEP_WITH_NCCL "GPU collectives with NCCL")
_lockstep_choice(LOCKSTEP_WITH_CCACHE "Compile with ccache")
_lockstep_choice(LOCKSTEP_WITH_MOLD "Link with mold")
_lockstep_choice(LOCKSTEP_BUILD_TRAINING "Build lockstep, the program for data and training")
option(LOCKSTEP_BUILD_TESTING "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LOCKSTEP_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" OFF)
set(LOCKSTEP_MODULE_DEPENDENCIES "" CACHE STRING "Modules that the modulefile loads first, such as gcc/14.2.0;openmpi/5.0.7")
set(LOCKSTEP_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPUs to compile for, as in CMAKE_CUDA_ARCHITECTURES; the code of the last one also runs on newer GPUs")
option(LOCKSTEP_ONE_CUDA_ARCHITECTURE "Compile only for the first of them, whose code also runs on newer GPUs: faster" OFF)
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
