// Which of a file's named arrays are the x and the y of which split.
// Invariant: every x has its y.
// Used by the importers of npy and HDF5.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep::data {

struct PairNames {
  std::string split;
  std::string x;
  std::string y;
};

/// For the split "train" NAME, train/NAME or NAME_train; for "val" val/NAME or NAME_val; for "test" test/NAME or
/// NAME_test, which is called "val" if there is no other. `has` tells what is there. Throws core::Error (usage) naming
/// `where` and `names`, the arrays there are, if there is no x or an x lacks its y.
[[nodiscard]] std::vector<PairNames> find_pairs(const std::vector<std::string>& names,
                                                const std::function<bool(const std::string& name)>& has,
                                                const std::string& x_name, const std::string& y_name,
                                                const std::string& where);
/// `names` are all there are.
[[nodiscard]] std::vector<PairNames> find_pairs(const std::vector<std::string>& names, const std::string& x_name,
                                                const std::string& y_name, const std::string& where);

}  // namespace lockstep::data
