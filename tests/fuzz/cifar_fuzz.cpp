// A byte that says which set (odd: CIFAR-100), the class names as a part, and the records as the rest.
#include "importer_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size > fuzz::most_input_bytes) return 0;
  static const fuzz::Folder folder;
  fuzz::Parts parts{data, size};
  const bool is_cifar100 = parts.byte() % 2 == 1;
  folder.write(is_cifar100 ? "fine_label_names.txt" : "batches.meta.txt", parts.part());
  folder.write(is_cifar100 ? "test.bin" : "test_batch.bin", parts.rest());
  return fuzz::try_source(
      [&] { return is_cifar100 ? data::open_cifar100(folder.path(), {}) : data::open_cifar10(folder.path(), {}); });
}
