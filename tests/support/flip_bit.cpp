// flip_bit PID PARAMETER SEED|CHECKPOINT: flips one bit of that parameter of mnist_cnn, as it begins with that seed or
// is in that checkpoint, where the process shares it with others. Exit 77 where the system lets nobody write to other
// processes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checkpoint/reader.hpp"
#include "core/descriptor.hpp"
#include "nn/initialize.hpp"
#include "nn/models.hpp"

namespace {

using namespace lockstep;

std::vector<char> bytes_of(const std::string& name, const std::string& origin) {
  const nn::Network network = nn::make_model({.name = "mnist_cnn", .input = {1, 28, 28}, .n_outputs = 10});
  for (const nn::Parameter& parameter : network.parameters()) {
    if (parameter.name != name) continue;
    std::vector<float> values(nn::n_elements(parameter.shape));
    if (checkpoint::is_checkpoint(origin))
      checkpoint::Checkpoint{origin}.read(checkpoint::whole("parameter/" + name, parameter.shape), values);
    else
      nn::initialize(parameter, std::stoull(origin), values);
    const char* const begin = reinterpret_cast<const char*>(values.data());
    return {begin, begin + values.size() * sizeof(float)};
  }
  return {};
}

/// Where `wanted` lies in the memory that the process shares and may write.
std::vector<std::uint64_t> find(const std::string& process, int memory, const std::vector<char>& wanted) {
  std::vector<std::uint64_t> found;
  std::ifstream maps{process + "/maps"};
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words{line};
    std::uint64_t begin = 0, end = 0;
    char dash = 0;
    std::string rights;
    words >> std::hex >> begin >> dash >> end >> rights;
    if (rights != "rw-s") continue;
    std::vector<char> bytes(end - begin);
    const ssize_t n = pread(memory, bytes.data(), bytes.size(), static_cast<off_t>(begin));
    if (n <= 0) continue;
    const auto last = bytes.begin() + n;
    for (auto at = bytes.begin(); (at = std::search(at, last, wanted.begin(), wanted.end())) != last; ++at)
      found.push_back(begin + static_cast<std::uint64_t>(at - bytes.begin()));
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string process = fmt::format("/proc/{}", argv[1]);
  std::vector<char> wanted = bytes_of(argv[2], argv[3]);
  const core::Descriptor memory{open((process + "/mem").c_str(), O_RDWR | O_CLOEXEC)};
  if (!memory) {
    fmt::print("{}/mem: {}\n", process, std::strerror(errno));
    return errno == EACCES || errno == EPERM ? 77 : 1;
  }
  const auto found = wanted.empty() ? std::vector<std::uint64_t>{} : find(process, memory.get(), wanted);
  fmt::print("'{}' is {} times in shared memory\n", argv[2], found.size());
  if (found.size() != 1) return 1;
  const char flipped = static_cast<char>(wanted.front() ^ 1);
  return pwrite(memory.get(), &flipped, 1, static_cast<off_t>(found.front())) == 1 ? 0 : 1;
}
