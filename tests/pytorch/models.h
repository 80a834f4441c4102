#ifndef RUBATO_TESTS_PYTORCH_MODELS_H_
#define RUBATO_TESTS_PYTORCH_MODELS_H_

#include <vector>

namespace rubato::pytorch {

// A model that models.py writes with torch.nn as well, under the same name.
struct NamedModel {
  const char* name;
  const char* config;  // A ModelConfig as text.
};

inline const std::vector<NamedModel>& Models() {
  static const auto& models = *new std::vector<NamedModel>{
      {"vectors", R"pb(
         input_shape: 6
         layers {
           name: "hidden"
           linear { units: 7 }
         }
         layers { relu {} }
         layers { linear { units: 9 no_bias: true } }
         layers { tanh {} }
         layers { layer_norm { epsilon: 0.01 } }
         layers { dropout { rate: 0.4 } }
         layers { linear { units: 5 } }
         loss: MEAN_SQUARED_ERROR
       )pb"},
      {"images", R"pb(
         input_shape: [ 3, 13, 11 ]
         layers { conv2d { filters: 6 kernel: 3 stride: 2 padding: 1 } }
         layers { gelu {} }
         layers { max_pool2d { window: 3 stride: 1 } }
         layers { group_norm { groups: 3 } }
         layers { conv2d { filters: 4 kernel: 2 no_bias: true } }
         layers { layer_norm {} }
         layers { average_pool2d { window: 2 } }
         layers { flatten {} }
         layers { linear { units: 5 } }
         loss: MEAN_SQUARED_ERROR
       )pb"},
      {"residual", R"pb(
         input_shape: [ 3, 9, 8 ]
         layers { conv2d { filters: 4 kernel: 3 padding: 1 } }
         layers {
           name: "same"
           residual {
             layers { conv2d { filters: 4 kernel: 3 padding: 1 } }
             layers { relu {} }
           }
         }
         layers {
           name: "smaller"
           residual {
             layers {
               name: "down"
               conv2d { filters: 8 kernel: 3 stride: 2 padding: 1 }
             }
             layers { group_norm { groups: 4 } }
             projection { stride: 2 norm_groups: 2 }
           }
         }
         layers { global_average_pool {} }
         layers { linear { units: 5 } }
         loss: MEAN_SQUARED_ERROR
       )pb"},
      {"language", R"pb(
         input_shape: 10
         layers {
           name: "tokens"
           embedding { vocabulary: 17 width: 12 }
         }
         layers {
           name: "block1"
           transformer { heads: 3 dropout: 0.2 }
         }
         layers {
           name: "block2"
           transformer { heads: 2 mlp_width: 20 }
         }
         layers { layer_norm {} }
         layers {
           name: "next"
           linear { units: 17 }
         }
         loss: MEAN_SQUARED_ERROR
       )pb"},
      {"recommender", R"pb(
         input_shape: 13
         layers {
           name: "vectors"
           branches {
             branches {
               end: 5
               layers { linear { units: 6 } }
               layers { relu {} }
               layers { linear { units: 4 } }
             }
             branches { begin: 5 }
           }
         }
         layers { dot_interaction { width: 4 } }
         layers {
           name: "top"
           linear { units: 3 }
         }
         layers { relu {} }
         layers { linear { units: 1 } }
         loss: MEAN_SQUARED_ERROR
       )pb"},
      {"cross", R"pb(
         input_shape: 12
         layers {
           name: "parts"
           branches {
             branches {
               layers {
                 name: "crossed"
                 cross { layers: 3 }
               }
             }
             branches {
               layers { linear { units: 7 } }
               layers { relu {} }
             }
             branches { layers { factorization_machine { width: 3 } } }
           }
         }
         layers { linear { units: 1 } }
         loss: MEAN_SQUARED_ERROR
       )pb"},
      {"attention", R"pb(
         input_shape: 7
         layers { embedding { vocabulary: 11 width: 8 no_positions: true } }
         layers { residual { layers { attention { heads: 4 } } } }
         layers { linear { units: 3 } }
         loss: MEAN_SQUARED_ERROR
       )pb"},
  };
  return models;
}

}  // namespace rubato::pytorch

#endif  // RUBATO_TESTS_PYTORCH_MODELS_H_
