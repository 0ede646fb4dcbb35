# gnuplot map.gp draws map.svg, map-dark.svg and map.png from map.dat
set encoding utf8
DATA = 'map.dat'
do for [look in 'light dark png'] {
    reset
    dark = look eq 'dark'
    ink = dark ? '#e6e9ec' : '#1b1f24'
    muted = dark ? '#a4adb6' : '#57606a'
    line = dark ? '#3a424a' : '#d0d7de'
    paper = dark ? '#14171a' : '#ffffff'
    accent = dark ? '#56b4e9' : '#0072b2'
    if (look eq 'png') {
        set terminal pngcairo noenhanced size 620,260 font 'sans,12' fontscale 2 linewidth 2 pointscale 2 background rgb paper
        set output 'map.png'
    } else {
        set terminal svg noenhanced size 310,130 font 'sans-serif,13' background rgb paper
        set output dark ? 'map-dark.svg' : 'map.svg'
    }
    set border 3 lc rgb muted
    set tics nomirror textcolor rgb ink
    set key textcolor rgb ink
    set style fill solid noborder
    set size ratio -1
    unset border
    unset tics
    unset key
    set xrange [-0.55:2.55]
    set yrange [-0.55:0.55]
    plot DATA using ($4 > 0 ? $1 : NaN):2:(0.5):(0.5):3 with boxxyerror lc rgb variable fs solid 0.8, \
         '' using 1:2:(0.5):(0.5) with boxxyerror lc rgb ink fs empty border lc rgb ink, \
         '' using 1:2:5 with labels textcolor rgb ink
    unset output
}
