// A recipe's text: a recipe or an Error that says where; what is accepted is printed and read again as the same recipe.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "training/recipe/recipe.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  using training::ResolvedRecipe;
  ResolvedRecipe resolved;
  try {
    resolved = training::resolve_text({reinterpret_cast<const char*>(data), size}, "fuzz.toml", {});
  } catch (const core::Error& error) {
    if (error.code() != core::ExitCode::usage || error.problem().where.empty()) std::abort();
    return 0;
  }
  const std::string text = print_config(resolved);
  if (training::resolve_text(text, "again.toml", {}).recipe != resolved.recipe) std::abort();
  return 0;
}
