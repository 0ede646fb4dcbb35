# gnuplot points.gp draws points.svg, points-dark.svg and points.png from points.dat
set encoding utf8
DATA = 'points.dat'
do for [look in 'light dark png'] {
    reset
    dark = look eq 'dark'
    ink = dark ? '#e6e9ec' : '#1b1f24'
    muted = dark ? '#a4adb6' : '#57606a'
    line = dark ? '#3a424a' : '#d0d7de'
    paper = dark ? '#14171a' : '#ffffff'
    accent = dark ? '#56b4e9' : '#0072b2'
    if (look eq 'png') {
        set terminal pngcairo noenhanced size 960,880 font 'sans,12' fontscale 2 linewidth 2 pointscale 2 background rgb paper
        set output 'points.png'
    } else {
        set terminal svg noenhanced size 480,440 font 'sans-serif,13' background rgb paper
        set output dark ? 'points-dark.svg' : 'points.svg'
    }
    set border 3 lc rgb muted
    set tics nomirror textcolor rgb ink
    set key textcolor rgb ink
    set style fill solid noborder
    set xlabel 'first number' textcolor rgb ink
    set ylabel 'second number' textcolor rgb ink
    unset key
    set size ratio -1
    plot DATA using 1:2:4 with points pt 7 ps 0.25 lc rgb variable
    unset output
}
