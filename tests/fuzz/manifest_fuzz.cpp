// The manifest's parser: any text, and any body under a right digest, is a manifest or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "data/format/manifest.hpp"
#include "data/format/manifest_text.hpp"

namespace {

// What is accepted is written again as it was.
void parse(const std::string& text) {
  try {
    if (serialize(lockstep::data::parse_manifest(text, "fuzz")) != text) std::abort();
  } catch (const lockstep::core::Error&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  parse(text);
  const auto sealed = lockstep::data::split_seal(text);
  parse(lockstep::data::seal(sealed ? std::string{sealed->body} : text));
  return 0;
}
