# Compiles, links and runs main.cpp with nothing but the flags that pkg-config gives.
# CXX, CXXFLAGS, PREFIX, LIBDIR and SOURCES come from CMakeLists.txt.
set -eu
PKG_CONFIG_PATH=$PREFIX/$LIBDIR/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs tessera)
$CXX -std=c++20 $CXXFLAGS "$SOURCES/main.cpp" $flags -o "$PREFIX/consumer"
"$PREFIX/consumer"
