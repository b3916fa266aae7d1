#include "io/digest.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <new>
#include <vector>

#include "io/file.hpp"

namespace lockstep::io {
namespace {

std::string to_hex(const XXH128_hash_t& hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string text;
  for (const unsigned char byte : canonical.digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

struct Digest::State {
  XXH3_state_t* raw = XXH3_createState();

  State() {
    if (raw == nullptr || XXH3_128bits_reset(raw) != XXH_OK) throw std::bad_alloc{};
  }
  ~State() { XXH3_freeState(raw); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Digest::Digest() : state_{std::make_unique<State>()} {}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::update(std::span<const std::byte> data) noexcept {
  // Fails only for a null pointer, which an empty span may have.
  if (!data.empty()) XXH3_128bits_update(state_->raw, data.data(), data.size());
}

std::string Digest::hex() const { return to_hex(XXH3_128bits_digest(state_->raw)); }

std::string digest_of(std::span<const std::byte> data) { return to_hex(XXH3_128bits(data.data(), data.size())); }

std::uint64_t short_digest_of(std::span<const std::byte> data) noexcept {
  return XXH3_64bits(data.data(), data.size());
}

std::string digest_of_file(const std::string& path) { return digest_of_file(File{path}); }

std::string digest_of_file(const File& file) {
  const std::uint64_t size = file.size().value;
  std::vector<std::byte> piece(std::min<std::uint64_t>(size, std::uint64_t{1} << 20));
  Digest digest;
  for (std::uint64_t offset = 0; offset < size; offset += piece.size()) {
    const auto part = std::span{piece}.first(std::min<std::uint64_t>(piece.size(), size - offset));
    file.read_at(offset, part);
    digest.update(part);
  }
  return digest.hex();
}

}  // namespace lockstep::io
