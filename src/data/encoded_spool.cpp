#include "data/encoded_spool.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.hpp"

namespace lockstep::data {
namespace {

[[noreturn]] void fail(std::string_view action, const std::string& folder) {
  const std::string reason = std::generic_category().message(errno);
  core::fail_system(fmt::format("cannot {} a temporary file in '{}': {}", action, folder, reason));
}

std::FILE* open_nameless(const std::string& folder) {
  std::string name = folder + "/spool-XXXXXX";
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0) fail("make", folder);
  unlink(name.c_str());
  std::FILE* const file = fdopen(descriptor, "w+b");
  if (file == nullptr) fail("open", folder);
  return file;
}

}  // namespace

EncodedSpool::EncodedSpool(const std::string& folder) : folder_{folder}, file_{open_nameless(folder)} {}

void EncodedSpool::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;  // whose address may be null
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail("write", folder_);
  size_ += bytes.size();
}

void EncodedSpool::rewind() {
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail("write", folder_);
}

void EncodedSpool::read(std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  if (std::fread(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail("read", folder_);
}

}  // namespace lockstep::data
