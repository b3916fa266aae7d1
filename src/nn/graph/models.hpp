// The models of the tutorials that Lockstep replaces, as lists of layers.
// Invariant: names, shapes and initial distributions of parameters are those of the PyTorch models named in models.cpp.
// Used by the trainer (recipes and --help).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nn/graph/network.hpp"

namespace lockstep::nn {

/// A model and the data that it is for.
struct ModelSpec {
  std::string name;
  Shape input{};                       ///< of one sample; not needed by models of ids
  std::uint64_t n_outputs = 0;         ///< classes, or numbers to predict
  std::vector<std::uint64_t> n_ids{};  ///< rows of each table: users, items
  bool takes_pixels = false;           ///< samples are images of uint8: see Input
  bool has_dropout = true;             ///< false: none, to compare with other programs step by step
  bool cifar_stem = false;             ///< ResNets begin with a 3x3 convolution of stride 1 and without max pooling
  int most_blocks = 0;                 ///< per stage of a ResNet; 0: as many as its name says
  bool has_log_softmax = false;        ///< for classes: appended to the model's own layers, as Loss::nll expects
};

struct ModelInfo {
  std::string_view name;
  Network (*make)(const ModelSpec&);
  bool takes_ids = false;
  bool has_stems = false;  ///< accepts cifar_stem
};

/// Throws core::Error (usage) if there is no such model or the spec does not fit it.
[[nodiscard]] const ModelInfo& find_model(std::string_view name);
[[nodiscard]] Network make_model(const ModelSpec& spec);

/// The row length of an embedding of `n_rows`: fastai's rule of thumb, which the MovieLens tutorial uses.
[[nodiscard]] std::uint64_t embedding_width(std::uint64_t n_rows) noexcept;

}  // namespace lockstep::nn
