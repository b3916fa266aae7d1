// The reader of plans that are kept on the disk: any bytes are plans or nothing, with a right sum at their end too, and
// what is read is written as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "core/crc32c.hpp"
#include "nn/cuda/plan_cache.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace cuda = lockstep::nn::cuda;
  std::vector<std::byte> content(size);
  if (size > 0) std::memcpy(content.data(), data, size);
  const auto try_it = [&] {
    const auto plans = cuda::read_plans(content, "GPU");
    if (plans && cuda::read_plans(cuda::write_plans("GPU", *plans), "GPU")->size() != plans->size()) std::abort();
  };
  try_it();
  const std::uint32_t sum = lockstep::core::crc32c(content);
  const auto bytes = std::as_bytes(std::span{&sum, 1});
  content.insert(content.end(), bytes.begin(), bytes.end());
  try_it();
  return 0;
}
