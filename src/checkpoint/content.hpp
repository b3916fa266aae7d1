// What lockstep train keeps in a checkpoint beside tensors: the fields, their ranges, and how they go together.
// Invariant: what is let through could have been written; share/schemas/checkpoint-1.schema.json has the same fields.
// Used by the index of a checkpoint, and by the trainer, which keeps and takes them.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/json.hpp"

namespace lockstep::checkpoint {

inline constexpr std::string_view damaged_fix =
    "resume from an older checkpoint, or copy this one again: Lockstep does not write it like this";

/// The losses of a run are kept one by one, as float64, up to this number; before the next their digest replaces them.
inline constexpr std::size_t most_losses = 4096;

/// Checks content that another program has written: no field is required.
extern const core::JsonRule any_content;
/// Checks content that lockstep train has written: all fields but bad_step are required.
extern const core::JsonRule training_content;
extern const core::JsonDocument state_document;     ///< content.state
extern const core::JsonDocument bad_step_document;  ///< content.bad_step

/// Checks what the tables of fields cannot say. Throws core::Error (usage), naming `where` and the field below `path`.
void check_content(const nlohmann::ordered_json& content, const std::string& where, const std::string& path);
void check_state(const nlohmann::ordered_json& state, const std::string& where, const std::string& path);

}  // namespace lockstep::checkpoint
