# What `cmake --install` puts where. Headers keep their folders below include/tessera, and that is the include folder:
# a program outside writes the same lines as the code inside, #include "codec/codec.h".
# It is found by find_package(tessera), target tessera::codec, and by pkg-config tessera.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/tessera)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
set(folders core models quantizers transformer codec)
set(libraries tessera_codec tessera_quantizers tessera_transformer tessera_builtin tessera_core) # users before used

# Position-independent, because a plug-in or a language binding links these archives into a shared object.
foreach(library IN LISTS libraries)
  string(REPLACE tessera_ "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
endforeach()
target_compile_features(tessera_core PUBLIC cxx_std_20)

install(TARGETS ${libraries} EXPORT tesseraTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${header_dir})
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${package_dir})
foreach(folder IN LISTS folders)
  install(DIRECTORY ${folder} DESTINATION ${header_dir} FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE
          PATTERN "media*" EXCLUDE)
endforeach()

if(TARGET tessera)
  install(TARGETS tessera RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/tesseraConfig.cmake.in tesseraConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tesseraConfig.cmake ${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake DESTINATION ${package_dir})

# The prefix in tessera.pc is relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(TRANSFORM libraries PREPEND -l OUTPUT_VARIABLE pc_libraries)
list(JOIN pc_libraries " " pc_libraries)
configure_file(cmake/tessera.pc.in tessera.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
