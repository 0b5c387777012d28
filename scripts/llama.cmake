# Read by CMake when it builds llama.cpp (see .cargo/config.toml).
if(PROJECT_NAME STREQUAL "llama.cpp")
  set(LLAMA_BUILD_COMMON OFF CACHE BOOL "the tools' library is not linked" FORCE)
endif()
