// Two IDX files: the images as a part, the labels as the rest.
#include "importer_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size > fuzz::most_input_bytes) return 0;
  static const fuzz::Folder folder;
  fuzz::Parts parts{data, size};
  folder.write("train-images-idx3-ubyte", parts.part());
  folder.write("train-labels-idx1-ubyte", parts.rest());
  return fuzz::try_source([&] { return data::open_idx(folder.path(), {}); });
}
