// share/sites.toml or one that somebody has changed: sites, or an Error that says where.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "training/lint/site_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  try {
    for (const site::Site& one : training::lint::read_sites({reinterpret_cast<const char*>(data), size}, "fuzz.toml"))
      if (site::find_site(std::span{&one, 1}, one.name) != &one) std::abort();
  } catch (const core::Error& error) {
    if (error.code() != core::ExitCode::usage || error.problem().where.empty()) std::abort();
  }
  return 0;
}
