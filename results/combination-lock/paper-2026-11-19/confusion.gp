# gnuplot confusion.gp draws confusion.svg, confusion-dark.svg and confusion.png from confusion.dat
set encoding utf8
DATA = 'confusion.dat'
do for [look in 'light dark png'] {
    reset
    dark = look eq 'dark'
    ink = dark ? '#e6e9ec' : '#1b1f24'
    muted = dark ? '#a4adb6' : '#57606a'
    line = dark ? '#3a424a' : '#d0d7de'
    paper = dark ? '#14171a' : '#ffffff'
    accent = dark ? '#56b4e9' : '#0072b2'
    if (look eq 'png') {
        set terminal pngcairo noenhanced size 1610,1220 font 'sans,12' fontscale 2 linewidth 2 pointscale 2 background rgb paper
        set output 'confusion.png'
    } else {
        set terminal svg noenhanced size 805,610 font 'sans-serif,13' background rgb paper
        set output dark ? 'confusion-dark.svg' : 'confusion.svg'
    }
    set border 3 lc rgb muted
    set tics nomirror textcolor rgb ink
    set key textcolor rgb ink
    set style fill solid noborder
    set xlabel 'latent state, in the order of the patterns' textcolor rgb ink
    set xtics ('0' 0, '10' 10, '20' 20, '30' 30, '40' 40, '50' 50, '60' 60, '70' 70, '80' 80, '90' 90) scale 0
    set ytics ('(0,0,*)' 0, '(0,5,*)' 5, '(1,0,*)' 10, '(1,5,*)' 15, '(2,0,*)' 20, '(2,5,*)' 25, '(3,0,*)' 30, '(3,5,*)' 35, '(4,0,*)' 40, '(4,5,*)' 45, '(5,0,*)' 50, '(5,5,*)' 55, '(6,0,*)' 60, '(6,5,*)' 65, '(7,0,*)' 70, '(7,5,*)' 75, '(8,0,*)' 80, '(8,5,*)' 85, '(9,0,*)' 90, '(9,5,*)' 95) scale 0
    set xtics add ('ignored' 101)
    set xtics rotate by 90 right
    set arrow from 100.5, graph 0 to 100.5, graph 1 nohead lc rgb muted
    unset key
    set border 15
    set size ratio 0.980392
    set xrange [-0.5:101.5]
    set yrange [99.5:-0.5]
    set cbrange [0:1]
    if (dark) { set palette defined (0 '#27475c', 1 '#8fd3ff') }
    if (!dark) { set palette defined (0 '#c6dbef', 0.3 '#85b8db', 1 '#08306b') }
    set colorbox
    set cbtics textcolor rgb ink
    plot DATA using 1:2:(0.5):(0.5):3 with boxxyerror fc palette
    unset output
}
