# Read by CMake when it builds llama.cpp (see .cargo/config.toml).
if(PROJECT_NAME STREQUAL "llama.cpp")
  set(LLAMA_BUILD_COMMON OFF CACHE BOOL "the tools' library is not linked" FORCE)
endif()

# Sets COMPILE_OPTIONS of the target's sources whose names match.
function(prime_compile_with options target pattern)
  if(NOT TARGET ${target})
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    if(source MATCHES "(^|/)(${pattern})\\.cpp$")
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}")
      set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS "${options}")
    endif()
  endforeach()
endfunction()

# What runs when a model is loaded, or never here (the engine draws tokens itself), need not be optimised as much: a third of
# the time that llama.cpp's own sources take. What runs for every batch (graph, context, batch, memory) stays as llama.cpp has it.
function(prime_optimize_less)
  prime_compile_with(-O1 llama "unicode|llama-(grammar|model|model-loader|quant|sampler|vocab)")
  prime_compile_with(-O1 ggml-base "gguf|ggml-(backend-meta|opt)")
endfunction()

# Most of the time that small files take is for the headers that all of them include, so that they are compiled in a few
# pieces: the graph builders, one for each of 150 architectures, in two, and what else is small and runs seldom in a third.
# The builders call functions that stay as they are, and gain nothing from -O3.
function(prime_unite)
  if(NOT TARGET llama)
    return()
  endif()
  get_target_property(sources llama SOURCES)
  get_target_property(folder llama SOURCE_DIR)
  set_target_properties(llama PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
    UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC optimize(\"O1\")")
  set(half 0)
  foreach(source IN LISTS sources)
    if(source MATCHES "(^|/)models/")
      set(group "models-${half}")
      math(EXPR half "1 - ${half}")
    elseif(source MATCHES "(unicode-data|llama-(adapter|arch|chat|hparams|mmap|model-saver|kv-cache-(msa|dsa|dsa-iswa|dsv4)|memory-hybrid-idx))\\.cpp$")
      set(group "cold")
    else()
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}")
    set_source_files_properties("${source}" TARGET_DIRECTORY llama PROPERTIES
      UNITY_GROUP ${group} SKIP_UNITY_BUILD_INCLUSION OFF)
  endforeach()
endfunction()

# The headers of the standard library are read once.
function(prime_precompile_headers)
  if(TARGET llama)
    target_precompile_headers(llama PRIVATE <algorithm> <array> <cmath> <cstring> <fstream> <functional> <map> <memory> <regex>
      <set> <sstream> <stdexcept> <string> <unordered_map> <unordered_set> <vector>)
  endif()
endfunction()

if(PROJECT_NAME STREQUAL "llama.cpp")
  cmake_language(DEFER CALL prime_precompile_headers)
  cmake_language(DEFER CALL prime_optimize_less)
  cmake_language(DEFER CALL prime_unite)
endif()
