#ifndef RUBATO_CLI_REPORT_STATISTICS_STUDENT_T_H_
#define RUBATO_CLI_REPORT_STATISTICS_STUDENT_T_H_

namespace rubato {

// The standard normal distribution function.
double NormalCdf(double x);

// Student's t distribution function with a whole number of degrees of freedom, >= 1: its finite series (Abramowitz and
// Stegun 1964, 26.7.3 and 26.7.4). x >= 0.
double StudentCdf(double x, int degrees_of_freedom);

// Where StudentCdf is `probability`, which is in [0.5, 1). Found by bisection.
double StudentQuantile(double probability, int degrees_of_freedom);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_STATISTICS_STUDENT_T_H_
