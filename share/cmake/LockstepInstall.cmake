# What `cmake --install` puts where; everything is relative to the prefix.
set_property(TARGET reduce_all PROPERTY INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS reduce_all RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(LOCKSTEP_HAVE_TRAINING)
  set_property(TARGET lockstep_program PROPERTY INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS lockstep_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/schemas ${PROJECT_SOURCE_DIR}/share/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)
# The pages keep their places beside one another, so that their links hold.
install(FILES README.md INSTALL CONTRIBUTING.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY share/doc DESTINATION ${CMAKE_INSTALL_DOCDIR}/share)
