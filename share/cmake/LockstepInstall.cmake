# Says what `cmake --install` installs, and where. All paths are relative to the prefix, which can be moved afterwards.

set(_programs reduce_all)
set(_pages "reduce_all|reduce_all")
if(LOCKSTEP_HAVE_TRAINING)
  list(APPEND _programs lockstep_program)
  list(APPEND _pages "lockstep|lockstep_program" "lockstep-train|lockstep_program|train" "lockstep-shard|lockstep_program|shard"
       "lockstep-ckpt|lockstep_program|ckpt" "lockstep-doctor|lockstep_program|doctor" "lockstep-lint|lockstep_program|lint")
endif()
set(_libraries lockstep_core lockstep_runtime lockstep_comm)

# Checks before it installs anything that the prefix is writable and has enough room.
configure_file(${CMAKE_CURRENT_LIST_DIR}/check_prefix.cmake.in ${PROJECT_BINARY_DIR}/check_prefix.cmake @ONLY)
set(_large "")
foreach(target IN LISTS _programs _libraries)
  string(APPEND _large " \"$<TARGET_FILE:${target}>\"")
endforeach()
install(CODE "set(LOCKSTEP_LARGE_FILES${_large})")
install(SCRIPT ${PROJECT_BINARY_DIR}/check_prefix.cmake)

# Programs look for libraries first beside them in the prefix, then where they were linked.
set_target_properties(${_programs} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" INSTALL_RPATH_USE_LINK_PATH ON)

# The library of collectives, for find_package(lockstep) of other projects.
install(TARGETS ${_programs} ${_libraries} EXPORT lockstep
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep)
install(DIRECTORY src/core src/runtime src/comm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep FILES_MATCHING PATTERN "*.hpp")
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(EXPORT lockstep NAMESPACE lockstep:: DESTINATION ${_package} FILE lockstep-targets.cmake)
include(CMakePackageConfigHelpers)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/lockstep-config.cmake.in ${PROJECT_BINARY_DIR}/lockstep-config.cmake
                              INSTALL_DESTINATION ${_package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockstep-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lockstep-config.cmake ${PROJECT_BINARY_DIR}/lockstep-config-version.cmake
        DESTINATION ${_package})

# Manual pages consist of what the programs print with --help.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man)  # make, unlike Ninja, does not create the folder of a command's output
set(_page_files "")
string(REGEX REPLACE "[|][^;]*" "" _page_names "${_pages}")
list(JOIN _page_names "," _page_names)
foreach(page IN LISTS _pages)
  string(REPLACE "|" ";" page ${page})
  list(POP_FRONT page name program)
  set(file ${PROJECT_BINARY_DIR}/man/${name}.1)
  add_custom_command(OUTPUT ${file} DEPENDS ${program} ${PROJECT_SOURCE_DIR}/share/man/make_page VERBATIM
                     COMMAND ${PROJECT_SOURCE_DIR}/share/man/make_page -o ${file} ${PROJECT_VERSION} ${_page_names} ${name}
                             $<TARGET_FILE:${program}> ${page})
  list(APPEND _page_files ${file})
endforeach()
add_custom_target(manual_pages ALL DEPENDS ${_page_files})
install(FILES ${_page_files} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES share/bash-completion/lockstep DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES share/bash-completion/lockstep DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME reduce_all)

# Modulefiles in one folder: Lmod reads the one in Lua, Environment Modules the one in Tcl.
if(LOCKSTEP_MPI_IS_OPENMPI)
  set(LOCKSTEP_MPI_NAME "Open MPI")
  set(LOCKSTEP_MODULE_MPI_FAMILIES " openmpi hpcx ")
  set(LOCKSTEP_OTHER_MPI_FAMILIES "mpich cray-mpich impi mvapich2 mvapich")
else()
  set(LOCKSTEP_MPI_NAME "an MPI of MPICH's family")
  set(LOCKSTEP_MODULE_MPI_FAMILIES " mpich cray-mpich impi mvapich2 mvapich ")
  set(LOCKSTEP_OTHER_MPI_FAMILIES "openmpi hpcx")
endif()
set(LOCKSTEP_LUA_DEPENDENCIES "")
set(LOCKSTEP_TCL_DEPENDENCIES "")
foreach(module IN LISTS LOCKSTEP_MODULE_DEPENDENCIES)
  string(APPEND LOCKSTEP_LUA_DEPENDENCIES "depends_on(\"${module}\")\n")
  string(APPEND LOCKSTEP_TCL_DEPENDENCIES "prereq ${module}\n")
endforeach()
set(_modulefiles ${CMAKE_INSTALL_DATADIR}/lockstep/modulefiles/lockstep)
configure_file(modulefiles/lockstep.lua.in ${PROJECT_BINARY_DIR}/modulefiles/${PROJECT_VERSION}.lua @ONLY)
configure_file(modulefiles/lockstep.tcl.in ${PROJECT_BINARY_DIR}/modulefiles/${PROJECT_VERSION} @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/modulefiles/${PROJECT_VERSION}.lua ${PROJECT_BINARY_DIR}/modulefiles/${PROJECT_VERSION}
        DESTINATION ${_modulefiles})

install(DIRECTORY share/schemas share/recipes share/tests share/reframe share/spack share/easybuild batch
        DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep USE_SOURCE_PERMISSIONS)
if(LOCKSTEP_HAVE_TRAINING)
  install(FILES share/sites.toml DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)
endif()
# The pages keep their relative places, so that their links work.
install(FILES README.md INSTALL CONTRIBUTING.md CHANGELOG.md CITATION.cff LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright) # required by Debian's rules
install(DIRECTORY share/doc DESTINATION ${CMAKE_INSTALL_DOCDIR}/share)
install(DIRECTORY share/compare DESTINATION ${CMAKE_INSTALL_DOCDIR}/share FILES_MATCHING PATTERN "*.md")
install(FILES batch/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/batch)

# For `cpack -G TGZ` and `cpack -G DEB`, in the build folder.
set(CPACK_PACKAGE_VENDOR "Lockstep")
set(CPACK_PACKAGE_CONTACT "The Lockstep authors" CACHE STRING "Maintainer of packages: NAME <ADDRESS>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME lockstep-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# The package of the launcher in Debian's MPI of that family.
if(LOCKSTEP_MPI_IS_OPENMPI)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
elseif(LOCKSTEP_MPI_IS_MPICH)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS mpich)
endif()
include(CPack)
