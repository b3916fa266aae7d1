// The header of a safetensors file, under the length that the input says, and under the right one, with data behind it.
#include "checkpoint/tensors.hpp"
#include "importer_fuzz.hpp"

namespace {

using namespace lockstep;

// What is accepted can be read, and takes no more memory than twice the file's bytes.
void read_all_tensors(const std::string& path) {
  try {
    const checkpoint::TensorSource source = checkpoint::open_safetensors({path, "fuzz"});
    for (std::size_t i = 0; i < source.tensors.size(); ++i) {
      if (!checkpoint::holds_floats(source.tensors[i])) continue;
      std::vector<float> values(nn::n_elements(source.tensors[i].spec.shape));
      source.read(i, values);
    }
  } catch (const core::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > fuzz::most_input_bytes) return 0;
  static const fuzz::Folder folder;
  fuzz::Parts parts{data, size};
  read_all_tensors(folder.write("a.safetensors", parts.rest()));
  const std::string header{parts.part()};
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size() & 0xff);
  length[1] = static_cast<char>(header.size() >> 8);
  read_all_tensors(folder.write("a.safetensors", length + header + std::string{parts.rest()}));
  return 0;
}
