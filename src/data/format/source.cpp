#include "data/format/source.hpp"

#include "core/error.hpp"

namespace lockstep::data {

std::vector<std::byte> Source::read_encoded(std::size_t, std::uint64_t, std::span<std::byte>) {
  core::fail_system("broken promise: encoded samples are asked of sources that have them");
}

}  // namespace lockstep::data
