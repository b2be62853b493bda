# find_package(aotriton) gives the targets aotriton::aotriton_v2, the library, and
# aotriton::aotriton, the same with nothing else. Its headers include <hip/hip_runtime.h>: the
# consumer finds HIP itself; the library looks for the HIP runtime when it runs.
get_filename_component(_aotriton_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET aotriton::aotriton_v2)
  add_library(aotriton::aotriton_v2 SHARED IMPORTED)
  set_target_properties(aotriton::aotriton_v2 PROPERTIES
    IMPORTED_LOCATION "${_aotriton_prefix}/lib/libaotriton_v2.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_aotriton_prefix}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_17)
  add_library(aotriton::aotriton INTERFACE IMPORTED)
  set_target_properties(aotriton::aotriton PROPERTIES
    INTERFACE_LINK_LIBRARIES aotriton::aotriton_v2)
endif()

set(aotriton_IMAGES_DIR "${_aotriton_prefix}/lib/aotriton.images")
unset(_aotriton_prefix)
