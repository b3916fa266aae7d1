// CIFAR's version for Python. A byte that says which set (odd: CIFAR-100), the class names as a part, and a batch as
// the rest, both pickles.
#include "importer_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size > fuzz::most_input_bytes) return 0;
  static const fuzz::Folder folder;
  fuzz::Parts parts{data, size};
  const bool is_cifar100 = parts.byte() % 2 == 1;
  folder.write(is_cifar100 ? "meta" : "batches.meta", parts.part());
  folder.write(is_cifar100 ? "test" : "test_batch", parts.rest());
  return fuzz::try_source(
      [&] { return is_cifar100 ? data::open_cifar100(folder.path(), {}) : data::open_cifar10(folder.path(), {}); });
}
