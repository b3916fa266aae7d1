#include "nn/host/dnnl_primitives.hpp"

#include <string_view>

namespace lockstep::nn::host {

bool is_reference(const dnnl::primitive_desc_base& described) {
  return std::string_view{described.impl_info_str()}.find("ref") != std::string_view::npos;
}

dnnl::primitive_attr make_attributes(bool is_added) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!is_added) return attributes;
  dnnl::post_ops sum;
  sum.append_sum();
  attributes.set_post_ops(sum);
  return attributes;
}

Primitive::Primitive(const_dnnl_primitive_desc_t described, const Arguments& arguments, bool is_reorder)
    : primitive_{described}, is_reorder_{is_reorder} {
  for (const auto& [name, memory] : arguments) {
    memories_.push_back(memory);
    arguments_.push_back({name, memory.get()});
  }
}

void Primitive::run(Run& run) const {
  run.n_reorders += is_reorder_ ? 1 : 0;
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), run.stream.get(),
                                                 static_cast<int>(arguments_.size()), arguments_.data()),
                          "a oneDNN primitive failed");
}

void run_all(const std::vector<Primitive>& primitives, Run& run) {
  for (const Primitive& primitive : primitives) primitive.run(run);
}

}  // namespace lockstep::nn::host
