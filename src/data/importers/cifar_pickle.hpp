// The files of CIFAR's version for Python: pickled dictionaries of images and labels.
// Invariant: a batch has one label for each image, and a class for each label.
// Used by the importer of CIFAR.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/importers/input.hpp"

namespace lockstep::data {

struct PickledBatch {
  Input input;
  std::uint64_t offset = 0;         ///< where the images lie, one after another
  std::vector<std::byte> labels{};  ///< as many as there are images
};

/// core::Error (usage) naming the file if it is not such a pickle, `data` is not an array [n, image_bytes], or the list
/// `labels_key` does not have n numbers below `n_classes`.
[[nodiscard]] PickledBatch read_pickled_batch(const std::string& path, const char* labels_key, std::uint64_t n_classes,
                                              std::uint64_t image_bytes);

/// The list `key` of `n_classes` texts.
[[nodiscard]] std::vector<std::string> read_pickled_names(const std::string& path, const char* key,
                                                          std::uint64_t n_classes);

}  // namespace lockstep::data
