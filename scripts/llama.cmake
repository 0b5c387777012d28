# Read by CMake when it builds llama.cpp (see .cargo/config.toml).
if(PROJECT_NAME STREQUAL "llama.cpp")
  set(LLAMA_BUILD_COMMON OFF CACHE BOOL "the tools' library is not linked" FORCE)
  # For the processor of this machine alone. The build script of llama-cpp-sys-2 sets the option itself, before this file.
  if("$ENV{LLAMA_NATIVE}" STREQUAL "1")
    set(GGML_NATIVE ON CACHE BOOL "all instructions of this processor" FORCE)
  endif()
endif()

# The sources of a target with these names, without folder and suffix, as absolute paths in `result`. A name that the pinned
# llama.cpp does not have ends the build: a new version must show which rules no longer apply.
function(prime_sources result target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(found)
  foreach(name IN LISTS ARGN)
    set(matches ${sources})
    list(FILTER matches INCLUDE REGEX "(^|/)${name}\\.cpp$")
    if(NOT matches)
      message(FATAL_ERROR "scripts/llama.cmake: the target ${target} of this llama.cpp has no source ${name}.cpp; "
        "adapt the lists of sources to the pinned version")
    endif()
    foreach(source IN LISTS matches)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}")
      list(APPEND found "${source}")
    endforeach()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# What runs when a model is loaded, or never here (the engine draws tokens itself), need not be optimised as much: a third of
# the time that llama.cpp's own sources take. What runs for every batch (graph, context, batch, memory) stays as llama.cpp has it.
function(prime_optimize_less)
  if(TARGET llama)
    prime_sources(sources llama unicode llama-grammar llama-model llama-model-loader llama-quant llama-sampler llama-vocab)
    set_source_files_properties(${sources} TARGET_DIRECTORY llama PROPERTIES COMPILE_OPTIONS -O1)
  endif()
  if(TARGET ggml-base)
    prime_sources(sources ggml-base gguf ggml-backend-meta ggml-opt)
    set_source_files_properties(${sources} TARGET_DIRECTORY ggml-base PROPERTIES COMPILE_OPTIONS -O1)
  endif()
endfunction()

# GCC before 14 believes that a tile configuration is its first eight bytes, and leaves out the stores to the rest: then the
# first AMX instruction is an illegal one.
function(prime_keep_tile_configuration)
  if(TARGET ggml-cpu AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    prime_sources(sources ggml-cpu amx/mmq)
    set_source_files_properties(${sources} TARGET_DIRECTORY ggml-cpu PROPERTIES COMPILE_OPTIONS "-fno-dse;-fno-tree-dse")
  endif()
endfunction()

# Most of the time that small files take is for the headers that all of them include, so that they are compiled in a few
# pieces: the graph builders, one for each of 150 architectures, in two, and what else is small and runs seldom in a third.
# The builders call functions that stay as they are, and gain nothing from -O3.
function(prime_unite)
  if(NOT TARGET llama)
    return()
  endif()
  set_target_properties(llama PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
    UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC optimize(\"O1\")")

  prime_sources(cold llama unicode-data llama-adapter llama-arch llama-chat llama-hparams llama-mmap llama-model-saver
    llama-kv-cache-msa llama-kv-cache-dsa llama-kv-cache-dsa-iswa llama-kv-cache-dsv4 llama-memory-hybrid-idx)
  set_source_files_properties(${cold} TARGET_DIRECTORY llama PROPERTIES
    UNITY_GROUP cold SKIP_UNITY_BUILD_INCLUSION OFF)

  prime_sources(builders llama "models/[^/]*")
  set(half 0)
  foreach(source IN LISTS builders)
    set_source_files_properties("${source}" TARGET_DIRECTORY llama PROPERTIES
      UNITY_GROUP models-${half} SKIP_UNITY_BUILD_INCLUSION OFF)
    math(EXPR half "1 - ${half}")
  endforeach()
endfunction()

# The headers of the standard library are read once. zig's compiler, which wheels are made with, makes no such files for CMake.
function(prime_precompile_headers)
  if(TARGET llama AND NOT CMAKE_CXX_COMPILER MATCHES "zig")
    target_precompile_headers(llama PRIVATE <algorithm> <array> <cmath> <cstring> <fstream> <functional> <map> <memory> <regex>
      <set> <sstream> <stdexcept> <string> <unordered_map> <unordered_set> <vector>)
  endif()
endfunction()

if(PROJECT_NAME STREQUAL "llama.cpp")
  cmake_language(DEFER CALL prime_precompile_headers)
  cmake_language(DEFER CALL prime_optimize_less)
  cmake_language(DEFER CALL prime_keep_tile_configuration)
  cmake_language(DEFER CALL prime_unite)
endif()
