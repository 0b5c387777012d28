# Read by CMake when it builds llama.cpp (see .cargo/config.toml).
if(PROJECT_NAME STREQUAL "llama.cpp")
  set(LLAMA_BUILD_COMMON OFF CACHE BOOL "the tools' library is not linked" FORCE)
endif()

# What runs when a model is loaded, or never here, need not be optimised as much: a third of the time that llama.cpp's own
# sources take. What runs for every batch (graph, context, batch, memory, sampler) stays as llama.cpp has it.
function(prime_optimize_less)
  if(NOT TARGET llama)
    return()
  endif()
  get_target_property(sources llama SOURCES)
  get_target_property(folder llama SOURCE_DIR)
  set(cold "unicode|unicode-data|llama-(adapter|arch|chat|grammar|hparams|mmap|model|model-loader|model-saver|quant|vocab)")
  foreach(source IN LISTS sources)
    if(source MATCHES "(^|/)(${cold}|llama-kv-cache-(msa|dsa|dsa-iswa|dsv4)|llama-memory-hybrid-idx)\\.cpp$")
      set_source_files_properties("${folder}/${source}" TARGET_DIRECTORY llama PROPERTIES COMPILE_OPTIONS -O1)
    endif()
  endforeach()
endfunction()

# Most of the time that the graph builders take, a small file for each of 150 architectures, is for the headers that all of them
# include: in pieces of forty they are read four times.
function(prime_unite_models)
  if(NOT TARGET llama)
    return()
  endif()
  get_target_property(sources llama SOURCES)
  get_target_property(folder llama SOURCE_DIR)
  set_target_properties(llama PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 40)
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "(^|/)models/")
      set_source_files_properties("${folder}/${source}" TARGET_DIRECTORY llama PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

if(PROJECT_NAME STREQUAL "llama.cpp")
  cmake_language(DEFER CALL prime_optimize_less)
  cmake_language(DEFER CALL prime_unite_models)
endif()
