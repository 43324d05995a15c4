# What Doxygen reads of a header: a marker's sentence is the contract of what follows it without one of its own.
1s|.*|/** @file */|
s|^namespace openreg \{|/** The backend. */ &|
/^ *\/\/ \[[a-z][^]]*\] /{
  N
  /\n *(\/\/|#|$|namespace |(class|struct) [A-Za-z]+;)/!s|// \[[^]]*\] |/// |
}
