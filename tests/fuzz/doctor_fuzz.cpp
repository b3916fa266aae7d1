// What ranks of `lockstep doctor` tell one another, and the list of what a process has loaded: facts or an Error, and
// facts that are told again are the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "training/doctor/facts.hpp"
#include "training/doctor/system.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  using namespace training::doctor;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  for (const Library& library : find_libraries(text))
    if (library.name.empty() || !library.path.starts_with('/')) std::abort();
  Facts facts;
  try {
    facts = facts_from_text(text);
  } catch (const core::Error& error) {
    if (error.code() != core::ExitCode::system) std::abort();
    return 0;
  }
  const std::string told = to_text(facts);
  if (to_text(facts_from_text(told)) != told) std::abort();
  return 0;
}
